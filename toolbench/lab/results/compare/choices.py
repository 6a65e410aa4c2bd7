"""Choices for the sides of a comparison, and suggested comparisons."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q

from toolbench.lab.metrics.pools import MORE_TRIALS_PURPOSE
from toolbench.lab.models import Run, RunConfig
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.run_choices import list_run_choices

MAX_RUNS = 40
MAX_SUGGESTIONS = 6
SUGGESTED_COLUMNS = ("strategy", "method", "profile", "stream", "model_name")  # columns whose values are compared
_CONFIG_COLUMNS = ("run_id", "canonical", "provider_name", "model_name", "profile", "strategy", "method", "stream")
AXIS_BY_COLUMN = {"model_name": "model"}  # the axes whose names differ from those of their columns


@dataclass(frozen=True, slots=True)
class SuggestedComparison:
    """A comparison that the page suggests.

    Attributes:
        query: query string that chooses both sides.
    """

    title: str
    query: str


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
    names = {run.pk: f"run {run.pk}{' (simulated)' if run.simulated else ''}" for run in runs}
    suggestions = (*_suggest_repeats(runs), *_suggest_providers(configs, names), *_suggest_within_run(configs, names))
    return CompareChoices(runs, values, suggestions[:MAX_SUGGESTIONS])


def list_side_runs(query: CompareQuery) -> tuple[Run, ...]:
    """Return the runs of the scope from which the user can choose for all sides, with at most one query."""
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
            simulated = " (simulated)" if run.simulated else ""
            title = f"Run {run.pk} against run {run.repeat_of_id}, which it repeats{simulated}"
            yield SuggestedComparison(title, query)


def _suggest_providers(configs: Iterable[RunConfig], run_names: Mapping[int, str]) -> Iterable[SuggestedComparison]:
    """Yield comparisons of one canonical model at two providers within one run."""
    providers_by_model: dict[tuple[int, str], set[str]] = defaultdict(set)
    for config in configs:
        if config.canonical:
            providers_by_model[config.run_id, config.canonical].add(config.provider_name)
    for (run, canonical), providers in providers_by_model.items():
        if len(providers) > 1:
            first, second = sorted(providers)[:2]
            parameters = {"run": run, "canonical": canonical, "a_provider": first, "b_provider": second}
            yield SuggestedComparison(
                f"{canonical} at {first} and at {second}, {run_names[run]}", urlencode(parameters)
            )


def _suggest_within_run(configs: Iterable[RunConfig], run_names: Mapping[int, str]) -> Iterable[SuggestedComparison]:
    """Yield comparisons of two values of an axis within one run."""
    values_by_column: dict[tuple[int, str], set[str]] = defaultdict(set)
    for config in configs:
        for column in SUGGESTED_COLUMNS:
            value = getattr(config, column)
            text = ("streamed" if value else "whole") if column == "stream" else value
            values_by_column[config.run_id, column].add(text)
    for (run, column), values in values_by_column.items():
        if len(values) > 1:
            first, second = sorted(values)[:2]
            axis = AXIS_BY_COLUMN.get(column, column)
            parameters = {"run": run, f"a_{axis}": first, f"b_{axis}": second}
            yield SuggestedComparison(f"{axis} {second} against {first}, {run_names[run]}", urlencode(parameters))
