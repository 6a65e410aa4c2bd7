"""The list of trials, page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from toolbench.lab.models import Trial
from toolbench.lab.results.trial_list.call_names import CallNames, read_call_names
from toolbench.lab.results.trial_list.facets import Facet, FacetValue, count_facets
from toolbench.lab.results.trial_list.filter import FAILED_FIRST, ORDERINGS, TrialFilter, filter_trials
from toolbench.lab.traces.search_text import get_text_lag

PAGE_SIZE = 50
MAX_COUNTED_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of the list.

    Attributes:
        path: the JSON path of the first problem; "" without one.
        calls: names of the expected calls and of those made; None if they were not read.
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
    calls: CallNames | None = None

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

    @property
    def outcomes(self) -> tuple[FacetValue, ...]:
        """The number of trials by outcome."""
        return next((facet.values for facet in self.facets if facet.name == "outcome"), ())


def get_trials(trial_filter: TrialFilter, page: int = 1, *, with_calls: bool = False) -> TrialListPage:
    """Return one page of the list.

    Of more than MAX_COUNTED_TRIALS trials, the newest are counted and sorted.

    Args:
        trial_filter: the filter and the order.
        page: from 1; a page beyond the last one is the last.
        with_calls: whether the names of calls are read, for which `read_call_names` needs its queries.
    """
    ids, is_more = _list_ids(trial_filter)
    pages = max(1, -(-len(ids) // PAGE_SIZE))
    page = min(max(1, page), pages)
    return TrialListPage(
        filter=trial_filter,
        rows=_list_rows(ids, trial_filter.sort, slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE), with_calls),
        total=len(ids),
        total_is_more=is_more,
        page=page,
        pages=pages,
        facets=count_facets(ids, trial_filter),
        text_lag=get_text_lag() if trial_filter.search else 0.0,
    )


def list_all_rows(trial_filter: TrialFilter) -> tuple[tuple[TrialRow, ...], bool]:
    """Return the newest MAX_COUNTED_TRIALS trials with the names of their calls, and whether there are more."""
    ids, is_more = _list_ids(trial_filter)
    return _list_rows(ids, trial_filter.sort, slice(MAX_COUNTED_TRIALS), with_calls=True), is_more


def _list_ids(trial_filter: TrialFilter) -> tuple[list[int], bool]:
    matching = filter_trials(trial_filter).order_by("-pk").values_list("pk", flat=True)
    ids = list(matching[: MAX_COUNTED_TRIALS + 1])
    return ids[:MAX_COUNTED_TRIALS], len(ids) > MAX_COUNTED_TRIALS


def _list_rows(ids: Sequence[int], sort: str, part: slice, with_calls: bool) -> tuple[TrialRow, ...]:
    chosen = RawSQL("lab_trial.id = ANY(%s)", [list(ids)], output_field=BooleanField())  # one parameter for all
    trials = Trial.objects.filter(chosen).annotate(rank=FAILED_FIRST)
    ordered = trials.order_by(*ORDERINGS[sort]).values_list("pk", flat=True)
    shown = list(ordered[part])
    rows = Trial.objects.select_related("config", "run").filter(pk__in=shown)
    found = list(rows.defer("final_text", "rendered_prompt", "causes", "run__request", "config__layers"))
    calls = read_call_names(found) if with_calls else {}
    by_id = {trial.pk: _build_row(trial, calls.get(trial.pk)) for trial in found}
    return tuple(by_id[pk] for pk in shown if pk in by_id)


def choose_mark(trial: Trial) -> str:
    """Return the word for a trial's mark: its outcome once finished, else "running" or "queued"."""
    return trial.outcome if trial.state == Trial.State.DONE else trial.state


def _build_row(trial: Trial, calls: CallNames | None) -> TrialRow:
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
        calls=calls,
    )
