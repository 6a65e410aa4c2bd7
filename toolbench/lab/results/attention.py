"""Items for the section Attention of the home page: runs, cells, providers and models with a problem."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from toolbench.lab.endpoints.setup_pages import ProviderRow
from toolbench.lab.models import Cell, Model, Run
from toolbench.lab.results.run.index import RunRow

PROBE_AGE = timedelta(days=30)  # capabilities that were probed earlier may have changed
MAX_STALE_MODELS = 3


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Problem that the home page points out.

    Attributes:
        mark: outcome whose shape and colour it gets.
        text: the problem in one sentence.
        detail: further facts.
        page: URL name of the page about it.
        page_id: argument of that URL; None if it has none.
    """

    mark: str
    text: str
    detail: str
    page: str
    page_id: int | None = None


def list_attention(runs: Sequence[RunRow], providers: Sequence[ProviderRow]) -> tuple[AttentionItem, ...]:
    """Return the problems of the given runs and providers, and of all cells and models. Two queries."""
    return (*_iter_runs(runs), *_iter_cells(), *_iter_providers(providers), *_iter_stale_models())


def _iter_runs(runs: Sequence[RunRow]) -> Iterator[AttentionItem]:
    for row in runs:
        if row.run.state == Run.State.PAUSED:
            reason = row.run.stopped_reason or "Paused."
            detail = f"{row.tally.queued:,} of {row.tally.trial_count:,} trials are queued"
            yield AttentionItem("cancelled", f"Run {row.run.pk} is paused: {reason}", detail, "run", row.run.pk)
        if row.answered and row.answered.target_status == "below":
            text = f"Run {row.run.pk}: {row.answered.percent} % passed"
            detail = f"its interval lies below {row.answered.target:g} %"
            yield AttentionItem("fail", text, f"{row.run} · {detail}", "run", row.run.pk)
        if row.tally.infra:
            text = f"Run {row.run.pk}: {row.tally.infra:,} infrastructure error{'' if row.tally.infra == 1 else 's'}"
            yield AttentionItem("infra", text, f"{row.run} · they can be retried", "run", row.run.pk)


def _iter_cells() -> Iterator[AttentionItem]:
    count = Cell.objects.exclude(compute_error="").filter(run__deleted_at=None).count()
    if count:
        text = f"{count:,} cell{'' if count == 1 else 's'} could not be computed"
        yield AttentionItem("infra", text, "their sums of tokens, cost and times are unknown", "health")


def _iter_providers(providers: Sequence[ProviderRow]) -> Iterator[AttentionItem]:
    for row in providers:
        if row.state != "pass":
            yield AttentionItem(row.state, str(row.provider), row.state_text, "provider", row.provider.pk)


def _iter_stale_models() -> Iterator[AttentionItem]:
    """Yield the models whose newest probe is older than `PROBE_AGE`, the oldest first."""
    models = Model.objects.filter(retired=False).annotate(probed_at=Max("probes__finished_at"))
    stale = models.filter(probed_at__lt=timezone.now() - PROBE_AGE).select_related("provider").order_by("probed_at")
    for model in stale[:MAX_STALE_MODELS]:
        assert model.probed_at is not None
        detail = f"{model.provider} · last probed on {model.probed_at:%d %b %Y}"
        yield AttentionItem("na", f"{model.name}: capabilities may be outdated", detail, "model", model.pk)
