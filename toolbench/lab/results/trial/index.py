"""The list of trials, page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from toolbench.lab.models import Trial
from toolbench.lab.results.trial.facets import Facet, count_facets
from toolbench.lab.results.trial.filter import FAILED_FIRST, ORDERINGS, TrialFilter, filter_trials
from toolbench.lab.traces.search_text import get_text_lag

PAGE_SIZE = 50
MAX_COUNTED_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of the list.

    Attributes:
        path: the JSON path of the first problem; "" without one.
    """

    id: int
    run_id: int
    simulated: bool
    provider: str
    model: str
    profile: str
    strategy: str
    method: str
    examples: str
    stream: bool
    scenario: str
    index: int
    mark: str  # an outcome, or running, or queued
    sentence: str
    failure_class: str
    turns: int
    requests: int
    duration_ms: float | None
    retries: int
    tokens: int
    cause: str
    path: str
    started_at: datetime | None
    added_by_hand: bool
    errors_retried: int
    label: str
    finished_at: datetime | None

    @property
    def configuration(self) -> str:
        """Provider, strategy, method, examples and streaming in words."""
        parts = (self.provider, self.strategy, self.method, self.examples, "streamed" if self.stream else "")
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class TrialListPage:
    """A page of the list.

    Attributes:
        total: number of trials, at most MAX_COUNTED_TRIALS.
        total_is_more: True if there are more than `total`: only the newest `total` are counted and sorted.
        text_lag: seconds since the end of the oldest trial that a search cannot find yet; 0 without a search.
    """

    filter: TrialFilter
    rows: tuple[TrialRow, ...]
    total: int
    total_is_more: bool
    page: int
    pages: int
    facets: tuple[Facet, ...]
    text_lag: float = 0.0


def get_trials(trial_filter: TrialFilter, page: int = 1) -> TrialListPage:
    """Return one page of the list.

    Of more than MAX_COUNTED_TRIALS trials, the newest are counted and sorted.
    """
    matching = filter_trials(trial_filter).order_by("-pk").values_list("pk", flat=True)
    ids = list(matching[: MAX_COUNTED_TRIALS + 1])
    is_more = len(ids) > MAX_COUNTED_TRIALS
    ids = ids[:MAX_COUNTED_TRIALS]
    pages = max(1, -(-len(ids) // PAGE_SIZE))
    page = min(max(1, page), pages)
    return TrialListPage(
        filter=trial_filter,
        rows=_list_rows(ids, trial_filter.sort, (page - 1) * PAGE_SIZE),
        total=len(ids),
        total_is_more=is_more,
        page=page,
        pages=pages,
        facets=count_facets(ids, trial_filter),
        text_lag=get_text_lag() if trial_filter.search else 0.0,
    )


def _list_rows(ids: Sequence[int], sort: str, start: int) -> tuple[TrialRow, ...]:
    chosen = RawSQL("lab_trial.id = ANY(%s)", [list(ids)], output_field=BooleanField())  # one parameter for all
    trials = Trial.objects.filter(chosen).annotate(rank=FAILED_FIRST)
    ordered = trials.order_by(*ORDERINGS[sort]).values_list("pk", flat=True)
    shown = list(ordered[start : start + PAGE_SIZE])
    rows = Trial.objects.select_related("config", "run").filter(pk__in=shown)
    rows = rows.defer("final_text", "rendered_prompt", "causes", "run__request", "config__layers")
    by_id = {trial.pk: _build_row(trial) for trial in rows}
    return tuple(by_id[pk] for pk in shown if pk in by_id)


def choose_mark(trial: Trial) -> str:
    """Return the word for a trial's mark: its outcome once finished, else "running" or "queued"."""
    return trial.outcome if trial.state == Trial.State.DONE else trial.state


def _build_row(trial: Trial) -> TrialRow:
    config = trial.config
    return TrialRow(
        id=trial.pk,
        run_id=trial.run_id,
        simulated=trial.run.simulated,
        provider=config.provider_name,
        model=config.model_name,
        profile=config.profile,
        strategy=config.strategy,
        method=config.method,
        examples=config.examples,
        stream=config.stream,
        scenario=trial.scenario,
        index=trial.index,
        mark=choose_mark(trial),
        sentence=trial.sentence,
        failure_class=trial.failure_class,
        turns=trial.turns,
        requests=trial.requests,
        duration_ms=trial.duration_ms,
        retries=trial.retries,
        tokens=trial.input_tokens + trial.output_tokens,
        cause=trial.cause,
        path=str((trial.verdict.get("first_bad") or {}).get("path") or ""),
        started_at=trial.started_at,
        added_by_hand=trial.added_by_hand,
        errors_retried=trial.errors_retried,
        label=trial.label,
        finished_at=trial.finished_at,
    )
