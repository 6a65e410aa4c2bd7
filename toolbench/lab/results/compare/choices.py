"""Choices for the sides of a comparison, and suggested comparisons."""

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q

from toolbench.lab.metrics.pools import MORE_TRIALS_PURPOSE
from toolbench.lab.models import Run, RunConfig
from toolbench.lab.results.compare.query import AXES, CompareQuery
from toolbench.lab.results.run_choices import list_run_choices

MAX_RUNS = 40
MAX_SUGGESTIONS = 6
SUGGESTED_COLUMNS = ("strategy", "method", "profile", "stream", "model_name")  # sides may differ in one of them
_CONFIG_COLUMNS = ("run_id", "canonical", "provider_name", "model_name", "profile", "strategy", "method", "stream")
AXIS_BY_COLUMN = {"model_name": "model"}  # axes that have another name than their column


@dataclass(frozen=True, slots=True)
class SuggestedComparison:
    """A comparison that the page suggests.

    Attributes:
        query: query string that chooses both sides.
        simulated: whether the runs are simulated.
    """

    title: str
    query: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class CompareChoices:
    """Choices of the compare form.

    Attributes:
        runs: the newest runs, at most MAX_RUNS.
        values: the values of the configurations of these runs, by axis, sorted.
        suggestions: at most MAX_SUGGESTIONS comparisons.
    """

    runs: tuple[Run, ...]
    values: dict[str, tuple[str, ...]]
    suggestions: tuple[SuggestedComparison, ...]


def get_compare_choices() -> CompareChoices:
    """Return the choices, with two SQL queries."""
    newest_runs = Run.objects.filter(Run.COUNTED, deleted_at=None).select_related("repeat_of").order_by("-pk")
    large_columns = ("request", "skipped", "repeat_of__request", "repeat_of__skipped")
    runs = tuple(newest_runs.defer(*large_columns)[:MAX_RUNS])
    configs = list(RunConfig.objects.filter(run__in=runs).only(*_CONFIG_COLUMNS).order_by("-run_id"))
    columns = {"provider": "provider_name", "model": "model_name"} | {
        name: name for name in ("profile", "strategy", "method")
    }
    values = {axis: _sort_distinct(getattr(config, column) for config in configs) for axis, column in columns.items()}
    simulated_ids = {run.pk for run in runs if run.simulated}
    suggestions = (
        *_suggest_repeats(runs),
        *_suggest_providers(configs, simulated_ids),
        *_suggest_within_run(configs, simulated_ids),
    )
    return CompareChoices(runs, values, suggestions[:MAX_SUGGESTIONS])


def list_side_runs(query: CompareQuery) -> tuple[Run, ...]:
    """Return the runs that a user can choose for all sides, with at most one query.

    They are the chosen runs and the newest other ones of the scope; () if the runs cannot be chosen for all sides.
    """
    if not query.can_choose_runs:
        return ()
    in_scope = Run.COUNTED & Q(imported=False, simulated=query.demo)
    return list_run_choices(Run.objects.filter(in_scope | Q(pk__in=query.runs), deleted_at=None), query.runs)


def _sort_distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value}))


def _suggest_repeats(runs: Iterable[Run]) -> Iterable[SuggestedComparison]:
    for run in runs:
        if run.repeat_of and run.repeat_of.deleted_at is None and run.purpose != MORE_TRIALS_PURPOSE:
            query = urlencode({"a_run": run.repeat_of_id, "b_run": run.pk})
            title = f"Run {run.pk} against run {run.repeat_of_id}, which it repeats"
            yield SuggestedComparison(title, query, run.simulated)


def _suggest_providers(configs: Iterable[RunConfig], simulated_ids: Set[int]) -> Iterable[SuggestedComparison]:
    """Yield a comparison of the first two providers, by name, of each canonical model within each run.

    Args:
        configs: the configurations of the runs.
        simulated_ids: primary keys of the simulated runs.
    """
    providers_by_model: dict[tuple[int, str], set[str]] = defaultdict(set)
    for config in configs:
        if config.canonical:
            providers_by_model[config.run_id, config.canonical].add(config.provider_name)
    for (run, canonical), providers in providers_by_model.items():
        if len(providers) > 1:
            first, second = sorted(providers)[:2]
            parameters = {"run": run, "canonical": canonical, "a_provider": first, "b_provider": second}
            title = f"{canonical} at {first} and at {second}, run {run}"
            yield SuggestedComparison(title, urlencode(parameters), run in simulated_ids)


def _suggest_within_run(configs: Iterable[RunConfig], simulated_ids: Set[int]) -> Iterable[SuggestedComparison]:
    """Yield a comparison of the first two values of each column of SUGGESTED_COLUMNS within each run.

    Args:
        configs: the configurations of the runs.
        simulated_ids: primary keys of the simulated runs.
    """
    values_by_column: dict[tuple[int, str], set[str]] = defaultdict(set)
    for config in configs:
        for column in SUGGESTED_COLUMNS:
            value = getattr(config, column)
            axis_value = ("streamed" if value else "whole") if column == "stream" else value
            values_by_column[config.run_id, column].add(axis_value)
    for (run, column), values in values_by_column.items():
        if len(values) > 1:
            first, second = sorted(values)[:2]
            axis = AXIS_BY_COLUMN.get(column, column)
            parameters = {"run": run, f"a_{axis}": first, f"b_{axis}": second}
            title = f"{AXES[axis].lower()} {second} against {first}, run {run}"
            yield SuggestedComparison(title, urlencode(parameters), run in simulated_ids)
