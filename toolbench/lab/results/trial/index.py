"""The list of trials, page by page."""

from dataclasses import dataclass
from datetime import datetime

from toolbench.lab.models import Trial
from toolbench.lab.results.trial.filter import FIELD_COLUMNS, ORDERINGS, TrialFilter, filter_trials
from toolbench.lab.traces.search_text import get_text_lag

PAGE_SIZE = 50
MAX_COUNTED_TRIALS = 10_000
CHOICE_LABELS = {"scenario": "Scenario", "failure_class": "Class", "cause": "Cause", "prompt": "Prompts"}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial of the list."""

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
    added_by_hand: bool
    errors_retried: int
    label: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A field of the filter form that offers the values of one run."""

    name: str
    label: str
    value: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrialListPage:
    """A page of the list.

    Attributes:
        total: number of trials, at most MAX_COUNTED_TRIALS.
        total_is_more: True if there are more than `total`.
        choices: fields of the filter form with the values that the run has; empty without a run.
        text_lag: seconds since the end of the oldest trial that a search cannot find yet; 0 without a search.
    """

    filter: TrialFilter
    rows: tuple[TrialRow, ...]
    total: int
    total_is_more: bool
    page: int
    pages: int
    choices: tuple[FilterChoice, ...]
    text_lag: float = 0.0


def get_trials(trial_filter: TrialFilter, page: int = 1) -> TrialListPage:
    """Return one page of the list. Counting stops at MAX_COUNTED_TRIALS."""
    found = filter_trials(trial_filter)
    counted = found.order_by()[: MAX_COUNTED_TRIALS + 1].count()
    total = min(counted, MAX_COUNTED_TRIALS)
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(max(1, page), pages)
    ordered = found.select_related("config", "run").order_by(*ORDERINGS[trial_filter.sort])
    ordered = ordered.defer("final_text", "rendered_prompt", "verdict", "run__request", "config__layers")
    rows = tuple(_build_row(trial) for trial in ordered[(page - 1) * PAGE_SIZE : page * PAGE_SIZE])
    text_lag = get_text_lag() if trial_filter.search else 0.0
    is_more = counted > MAX_COUNTED_TRIALS
    return TrialListPage(trial_filter, rows, total, is_more, page, pages, _list_choices(trial_filter), text_lag)


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
        added_by_hand=trial.added_by_hand,
        errors_retried=trial.errors_retried,
        label=trial.label,
        finished_at=trial.finished_at,
    )


def _list_choices(trial_filter: TrialFilter) -> tuple[FilterChoice, ...]:
    if trial_filter.run is None:
        return ()
    trials = Trial.objects.filter(run_id=trial_filter.run).order_by()
    choices = []
    for name, label in CHOICE_LABELS.items():
        values = trials.values_list(FIELD_COLUMNS[name], flat=True).distinct()
        offered = tuple(sorted(value for value in values if value))
        choices.append(FilterChoice(name, label, getattr(trial_filter, name), offered))
    return tuple(choices)
