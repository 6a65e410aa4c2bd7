"""Reasons why a run is slow: limits of rate control, and back-off before retries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Max, Min, Sum
from django.utils import timezone

from toolbench.evals.statistics.rounding import format_rounded, round_to_int
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import PacePoint, Run, RunConfig

MIN_BACKOFF_SECONDS = 0.5  # mean per ended trial; a shorter back-off is not listed


@dataclass(frozen=True, slots=True)
class RunDelay:
    """Reason why a run is slow.

    Attributes:
        sentence: the reason in words, with its figures.
        provider_id: primary key of the provider whose rate control is the reason; None for back-off.
    """

    sentence: str
    provider_id: int | None = None


def list_delays(run: Run, configs: Sequence[RunConfig], run_tally: Tally) -> tuple[RunDelay, ...]:
    """Return the reasons why a run is slow, with at most one query.

    The limits of rate control are read while the run is running, and afterwards if answers had status 429 or 5xx.

    Args:
        run: the run.
        configs: its configurations.
        run_tally: counts of all its cells.
    """
    has_errors = bool(run_tally.answers_429 or run_tally.answers_5xx)
    provider_ids = {config.provider_id for config in configs if config.provider_id is not None}
    reads_limits = bool(provider_ids) and (has_errors or run.state == Run.State.RUNNING)
    return (*(_list_limits(run, provider_ids) if reads_limits else ()), *_list_backoff(run_tally))


def _list_limits(run: Run, provider_ids: set[int]) -> Iterator[RunDelay]:
    """Yield a reason for each provider whose rate control limited trials or requests during the run."""
    points = PacePoint.objects.filter(
        provider__in=provider_ids, at__gte=run.created_at, at__lte=run.finished_at or timezone.now()
    ).order_by("provider__name")
    rows = points.values("provider", "provider__name", "provider__concurrency").annotate(
        lowest=Min("concurrency"),
        highest=Max("concurrency"),
        rejected=Sum("rejections"),
        answered=Sum("answers"),
        lowest_per_minute=Min("requests_per_minute"),
        highest_per_minute=Max("requests_per_minute"),
    )
    for row in rows:
        limit_texts = []
        lowest, highest = row["lowest"], row["highest"]
        if lowest < row["provider__concurrency"]:
            in_flight = f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
            limit_texts.append(f"{in_flight} of at most {row['provider__concurrency']} trials at once")
        if (lowest_per_minute := row["lowest_per_minute"]) is not None:
            prefix = "" if lowest_per_minute == row["highest_per_minute"] else "as few as "
            limit_texts.append(f"{prefix}{round_to_int(lowest_per_minute):,} requests a minute")
        if limit_texts:
            total = row["rejected"] + row["answered"]
            sentence = f"Rate control of {row['provider__name']} allowed {' and '.join(limit_texts)}"
            if row["rejected"]:
                sentence += f"; {row['rejected']:,} of {total:,} requests, those of other runs included, were rejected"
            yield RunDelay(f"{sentence}.", row["provider"])


def _list_backoff(run_tally: Tally) -> Iterator[RunDelay]:
    seconds = run_tally.backoff_ms / 1000
    if run_tally.ended and seconds / run_tally.ended >= MIN_BACKOFF_SECONDS:
        mean = format_rounded(seconds / run_tally.ended, 1)
        yield RunDelay(f"Back-off before retries took {round_to_int(seconds):,} s, {mean} s a trial.")
