"""Sides of a comparison whose URL names no sides: the values of an axis with several values in the scope."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet, Sum

from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS
from toolbench.lab.models import Cell, CellPool, Run
from toolbench.lab.results.compare.query import (
    CONFIG_COLUMNS,
    MAX_SIDES,
    RUN_AXES,
    SIDE_AXES,
    SIDE_LETTERS,
    CompareQuery,
    read_config_values,
)

MAX_SCOPE_SIDES = 7


@dataclass(frozen=True, slots=True)
class ScopeSides:
    """Sides to show, and the sides that can be added.

    Attributes:
        query: the query with its sides; without sides if no axis has several values.
        axis: the axis whose values are the sides; "" if no axis has several values, or if the URL names sides that are
            not values of only one axis.
        axes: axes with several values in the scope, of which the user can choose one for the sides.
        other_values: values of the axis that are not sides, in the order in which `get_scope_sides` prefers them.
        next_letter: letter of the side that can be added; "" if there are MAX_SIDES sides.
    """

    query: CompareQuery
    axis: str
    axes: tuple[str, ...]
    other_values: tuple[str, ...]
    next_letter: str

    @property
    def total(self) -> int:
        """Return the number of values of the axis in the scope.

        It is valid only if the axis has several values and the URL names no sides.
        """
        return len(self.query.side_values) + len(self.other_values)


def get_scope_sides(query: CompareQuery) -> ScopeSides:
    """Return the sides that the query names, or else the sides of its scope, with at most two SQL queries.

    Without named sides, the sides are values of the axis `query.by`, or of the first axis with several values. The
    baseline is the value with the most trials in scenarios in which another value was tried too. The other sides are
    the next values that share a scenario with the baseline. There are at most MAX_SCOPE_SIDES sides, the baseline
    included. If no values share a scenario, the sides are the values with the most trials.
    """
    scenarios_by_axis = _read_scenarios_by_axis(query)
    values_by_axis = {axis: tuple(scenarios) for axis, scenarios in scenarios_by_axis.items()}
    axes = tuple(axis for axis in SIDE_AXES if len(values_by_axis[axis]) > 1 and axis not in query.both)
    if query.has_named_sides:
        return _build_named_sides(query, values_by_axis, axes)
    axis = query.by if query.by in axes else next(iter(axes), "")
    values = values_by_axis[axis] if axis else ()
    comparable = [value for value in values if scenarios_by_axis[axis][value] & scenarios_by_axis[axis][values[0]]]
    shown_values = tuple(comparable if len(comparable) > 1 else values)[:MAX_SCOPE_SIDES]
    other_values = tuple(value for value in values if value not in shown_values)
    if len(shown_values) > 1:
        query = query.with_sides([{axis: value} for value in shown_values])
    return ScopeSides(query, axis, axes, other_values, find_next_letter(len(shown_values)))


def _build_named_sides(
    query: CompareQuery, values_by_axis: Mapping[str, Sequence[str]], axes: tuple[str, ...]
) -> ScopeSides:
    axes_of_sides = {axis for side in query.side_values for axis in side}
    axis = next(iter(axes_of_sides)) if len(axes_of_sides) == 1 and all(query.side_values) else ""
    named_values = {side.get(axis) for side in query.side_values}
    other_values = tuple(value for value in values_by_axis.get(axis, ()) if value not in named_values)
    return ScopeSides(query, axis, axes, other_values, find_next_letter(len(query.side_values)))


def find_next_letter(side_count: int) -> str:
    """Return the letter of the side that can be added to `side_count` sides; "" if there are MAX_SIDES."""
    return SIDE_LETTERS[side_count] if side_count < MAX_SIDES else ""


def _read_scenarios_by_axis(query: CompareQuery) -> Mapping[str, Mapping[str, Set[str]]]:
    """Return the scenarios with trials in the scope by axis and value; `_group_by_value` sorts the values."""
    counts: dict[str, Counter[tuple[str, str]]] = {axis: Counter() for axis in SIDE_AXES}
    for *values, scenario, trial_count in _read_trial_counts(query):
        for axis, value in zip(SIDE_AXES, values, strict=True):
            counts[axis][value, scenario] += trial_count
    return {axis: _group_by_value(+axis_counts) for axis, axis_counts in counts.items()}  # + drops counts of 0


def _group_by_value(counts: Counter[tuple[str, str]]) -> Mapping[str, Set[str]]:
    """Return the scenarios of each value.

    The values are sorted by their number of trials in scenarios in which another value was tried too, the largest
    first.

    Args:
        counts: number of trials by value and scenario.
    """
    values_per_scenario = Counter(scenario for _, scenario in counts)
    scenarios: dict[str, set[str]] = defaultdict(set)
    trials: Counter[str] = Counter()
    comparable_trials: Counter[str] = Counter()
    for (value, scenario), trial_count in counts.items():
        scenarios[value].add(scenario)
        trials[value] += trial_count
        comparable_trials[value] += trial_count if values_per_scenario[scenario] > 1 else 0
    ordered = sorted(trials, key=lambda value: (-comparable_trials[value], -trials[value], value))
    return {value: scenarios[value] for value in ordered}


def _read_trial_counts(query: CompareQuery) -> list[tuple[Any, ...]]:
    """Return (*values of SIDE_AXES, scenario, number of trials) rows of the scope.

    The function sends at most two SQL queries. Sums over all runs come from stored pools, and from the cells of runs
    that no pool contains yet.
    """
    cells = Cell.objects.filter(query.chosen.condition, run__deleted_at=None, control=False)
    ids_by_axis = {axis: query.both[axis] for axis in RUN_AXES if axis in query.both}
    for axis, ids in ids_by_axis.items():
        cells = cells.filter(**{f"{axis}__in": ids.split(",")})
    if not ids_by_axis:
        cells = cells.filter(run__in=Run.objects.filter(Run.COUNTED, simulated=query.demo, imported=False))
    if ids_by_axis or query.chosen.has_time or "canonical" in query.both:
        return _sum_by_axes(cells, query, "config__", "")
    pools = CellPool.objects.filter(simulated=query.demo, imported=False, control=False)
    for name, values in query.chosen.choices.items():
        pools = pools.filter(**{f"{CHOICE_COLUMNS[name]}__in": values}) if values else pools
    unpooled = _sum_by_axes(cells.filter(run__pooled=False), query, "config__", "")
    return [*_sum_by_axes(pools, query, "", "sum_"), *unpooled]


def _sum_by_axes(
    rows: QuerySet[Any], query: CompareQuery, config_prefix: str, count_prefix: str
) -> list[tuple[Any, ...]]:
    """Return (*values of SIDE_AXES, scenario, number of trials) rows.

    Args:
        rows: cells or pools.
        query: query whose values for all sides select rows, except the prompt version, upstream and day.
        config_prefix: prefix of the columns of a configuration.
        count_prefix: prefix of the columns of counts.
    """
    conditions = {f"{config_prefix}{column}": value for column, value in read_config_values(query.both).items()}
    tried = Sum(F(f"{count_prefix}passed") + F(f"{count_prefix}failed") + F(f"{count_prefix}infra"))
    columns = [f"{config_prefix}{CONFIG_COLUMNS[axis]}" for axis in SIDE_AXES] + ["scenario"]
    return list(rows.filter(**conditions).order_by().values_list(*columns).annotate(tried=tried))
