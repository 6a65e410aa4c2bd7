"""Pages of the trial list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.lab.models import Run, Trial
from toolbench.lab.results.trial_list.call_names import CALL_FIELDS, CallNames, annotate_calls, build_call_names
from toolbench.lab.results.trial_list.facets import Facet, FacetValue, build_facets
from toolbench.lab.results.trial_list.filter import TrialFilter, has_named_runs
from toolbench.lab.results.trial_list.newest_trials import NewestTrials, read_newest_trials
from toolbench.lab.results.trial_list.query_text import parse_query_text
from toolbench.lab.sql import has_any_id
from toolbench.lab.traces.search_text import get_text_lag

PAGE_SIZE = 50
MAX_COUNTED_TRIALS = 10_000
# Columns that a row needs; reading all columns takes several times as long.
_READ_FIELDS = (
    *("pk", "run_id", "scenario", "index", "state", "outcome", "sentence", "failure_class", "cause", "verdict"),
    *("turns", "requests", "retries", "input_tokens", "output_tokens", "duration_ms", "started_at", "finished_at"),
    *("added_by_hand", "errors_retried", "label", "run__simulated"),
    *(f"config__{name}" for name in ("provider_name", "model_name", "profile", "strategy", "method", "examples")),
    "config__stream",
)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of the list.

    Attributes:
        index: number of the repeat within its cell, from 1.
        mark: outcome; "running" or "queued" until the trial has ended.
        sentence: what went wrong first; "" if nothing did.
        tokens: sum of input and output tokens.
        path: JSON path of the first problem; "" without one.
        errors_retried: number of times that a user retried the trial after an error.
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
    mark: str
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
        """Return provider, strategy, method, examples and streaming in words."""
        parts = (self.provider, self.strategy, self.method, self.examples, "streamed" if self.stream else "")
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class TrialListPage:
    """A page of the list.

    Attributes:
        total: number of matching trials, at most MAX_COUNTED_TRIALS.
        total_is_more: True if there are more than `total`: only the newest `total` are counted and sorted.
        is_simulated: whether the filter selects only simulated runs: their scope, or one run that is simulated.
        text_lag: seconds for which the next trial has waited for its search text; 0 if none waits, and without a search
            of texts.
    """

    filter: TrialFilter
    rows: tuple[TrialRow, ...]
    total: int
    total_is_more: bool
    page: int
    pages: int
    facets: tuple[Facet, ...]
    is_simulated: bool = False
    text_lag: float = 0.0

    @property
    def outcomes(self) -> tuple[FacetValue, ...]:
        """Return the outcomes with their numbers of trials; () if no trial matches."""
        return next((facet.values for facet in self.facets if facet.name == "outcome"), ())


def get_trials(trial_filter: TrialFilter, page: int = 1, *, needs_call_names: bool = False) -> TrialListPage:
    """Return one page of the list.

    If more than MAX_COUNTED_TRIALS trials match, only the newest are counted and sorted.

    Args:
        trial_filter: the filter and the order.
        page: number of the page, from 1; a number after that of the last page stands for the last page.
        needs_call_names: whether the names of calls are read too, with one more SQL query if a scenario is a test case.
    """
    newest = _read_page(trial_filter, max(1, page))
    pages = max(1, -(-newest.total // PAGE_SIZE))
    if page > pages:
        page, newest = pages, _read_page(trial_filter, pages)
    rows = _read_rows(newest.ids, needs_call_names)
    return TrialListPage(
        filter=trial_filter,
        rows=rows,
        total=newest.total,
        total_is_more=newest.is_more,
        page=max(1, page),
        pages=pages,
        facets=build_facets(newest.facets, newest.total, trial_filter),
        is_simulated=_selects_simulated_runs(trial_filter, rows),
        text_lag=get_text_lag() if parse_query_text(trial_filter.search).reads_texts else 0.0,
    )


def list_all_rows(trial_filter: TrialFilter) -> tuple[tuple[TrialRow, ...], bool]:
    """Return the newest MAX_COUNTED_TRIALS matching trials, and whether more match.

    The rows are in the order of the filter and have the names of their calls.
    """
    newest = read_newest_trials(trial_filter, start=0, size=MAX_COUNTED_TRIALS, max_counted=MAX_COUNTED_TRIALS)
    return _read_rows(newest.ids, needs_call_names=True), newest.is_more


def _read_page(trial_filter: TrialFilter, page: int) -> NewestTrials:
    start = min((page - 1) * PAGE_SIZE, MAX_COUNTED_TRIALS)
    return read_newest_trials(trial_filter, start=start, size=PAGE_SIZE, max_counted=MAX_COUNTED_TRIALS)


def _read_rows(ids: Sequence[int], needs_call_names: bool) -> tuple[TrialRow, ...]:
    trials = Trial.objects.filter(has_any_id("pk", ids)).order_by()
    fields = _READ_FIELDS
    if needs_call_names:
        trials, fields = annotate_calls(trials), tuple(dict.fromkeys((*_READ_FIELDS, *CALL_FIELDS)))
    rows = {row.pk: row for row in trials.values_list(*fields, named=True)}
    calls = build_call_names(tuple(rows.values())) if needs_call_names else {}
    return tuple(_build_row(rows[pk], calls.get(pk)) for pk in ids if pk in rows)


def _selects_simulated_runs(trial_filter: TrialFilter, rows: Sequence[TrialRow]) -> bool:
    """Return whether the filter selects only simulated runs, with one query for a run without rows."""
    if not has_named_runs(trial_filter):
        return bool(trial_filter.demo) and not trial_filter.scope and not trial_filter.imported
    if trial_filter.run is None:
        return False
    return rows[0].simulated if rows else Run.objects.filter(pk=trial_filter.run, simulated=True).exists()


def choose_mark(trial: Trial) -> str:
    """Return the outcome of a trial that has ended, else its state, "running" or "queued"."""
    return trial.outcome if trial.state == Trial.State.DONE else trial.state


def _build_row(trial: Any, calls: CallNames | None) -> TrialRow:
    """Return the row of a trial, given as a named row with _READ_FIELDS."""
    return TrialRow(
        id=trial.pk,
        run_id=trial.run_id,
        simulated=trial.run__simulated,
        provider=trial.config__provider_name,
        model=trial.config__model_name,
        profile=trial.config__profile,
        strategy=trial.config__strategy,
        method=trial.config__method,
        examples=trial.config__examples,
        stream=trial.config__stream,
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
        path=str(get_object(trial.verdict.get("first_bad")).get("path") or ""),
        started_at=trial.started_at,
        added_by_hand=trial.added_by_hand,
        errors_retried=trial.errors_retried,
        label=trial.label,
        finished_at=trial.finished_at,
        calls=calls,
    )
