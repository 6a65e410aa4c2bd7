"""Sides of a scope: the values of the first axis that varies in it, where the URL names no sides."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet, Sum

from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS
from toolbench.lab.models import Cell, CellPool
from toolbench.lab.results.compare.query import MAX_SIDES, RUN_AXES, SIDE_AXES, SIDE_LETTERS, CompareQuery

MAX_SCOPE_SIDES = 7
_COLUMNS = {"provider": "provider_name", "model": "model_name"} | {
    name: name for name in ("profile", "strategy", "method", "canonical")
}


@dataclass(frozen=True, slots=True)
class ScopeSides:
    """The sides to show and what else the scope has.

    Attributes:
        axis: the axis that separates the sides; "" where it is not a single one.
        axes: axes with several values in the scope, which could separate the sides.
        more: values of the axis that are no sides, the most tried first; they can be added.
        next_letter: prefix of the parameter that adds a side; "" where no more sides are possible.
    """

    query: CompareQuery
    axis: str
    axes: tuple[str, ...]
    more: tuple[str, ...]
    next_letter: str

    @property
    def total(self) -> int:
        """Return how many values of the axis the scope has, where the sides are of the scope."""
        return len(self.query.own_values) + len(self.more)


def get_scope_sides(query: CompareQuery) -> ScopeSides:
    """Return the sides that the query names, else those of its scope, with two queries."""
    tried = _count_tried(query)
    axes = tuple(axis for axis in SIDE_AXES if len(tried[axis]) > 1 and axis not in query.both)
    if query.names_sides:
        return _describe_named(query, tried, axes)
    axis = query.by if query.by in axes else next(iter(axes), "")
    values = tried[axis] if axis else ()
    shown = values[:MAX_SCOPE_SIDES]
    if len(shown) > 1:
        query = query.with_sides([{axis: value} for value in shown])
    return ScopeSides(query, axis, axes, values[MAX_SCOPE_SIDES:], _find_next_letter(len(shown)))


def _describe_named(query: CompareQuery, tried: Mapping[str, Sequence[str]], axes: tuple[str, ...]) -> ScopeSides:
    named = query.own_values
    names = {tuple(side) for side in named}
    axis = next(iter(names))[0] if len(names) == 1 and len(next(iter(names))) == 1 else ""
    sides = {side.get(axis) for side in named}
    more = tuple(value for value in tried.get(axis, ()) if value not in sides)
    return ScopeSides(query, axis, axes, more, _find_next_letter(len(named)))


def _find_next_letter(sides: int) -> str:
    return SIDE_LETTERS[sides] if sides < MAX_SIDES else ""


def _count_tried(query: CompareQuery) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each axis that has trials in the scope, the most tried first."""
    counts: dict[str, Counter[str]] = {axis: Counter() for axis in SIDE_AXES}
    for *values, tried in _read_settings(query):
        for axis, value in zip(SIDE_AXES, values, strict=True):
            counts[axis][value] += tried
    return {axis: tuple(sorted(+found, key=_build_order(found))) for axis, found in counts.items()}


def _build_order(counts: Counter[str]) -> Callable[[str], tuple[int, str]]:
    return lambda value: (-counts[value], value)


def _read_settings(query: CompareQuery) -> list[tuple[Any, ...]]:
    """Return the values of SIDE_AXES that were tried in the scope with numbers of trials, with two queries."""
    cells = Cell.objects.filter(query.chosen.condition, run__deleted_at=None, control=False)
    named = {axis: query.both[axis] for axis in RUN_AXES if axis in query.both}
    for axis, ids in named.items():
        cells = cells.filter(**{f"{axis}__in": ids.split(",")})
    if not named:
        cells = cells.filter(run__simulated=query.demo, run__imported=False)
    if named or query.chosen.has_time or "canonical" in query.both:
        return _sum_by_settings(cells, query, "config__", "")
    pools = CellPool.objects.filter(simulated=query.demo, imported=False, control=False)
    for name, values in query.chosen.choices.items():
        pools = pools.filter(**{f"{CHOICE_COLUMNS[name]}__in": values}) if values else pools
    recent = _sum_by_settings(cells.filter(run__pooled=False), query, "config__", "")
    return [*_sum_by_settings(pools, query, "", "sum_"), *recent]


def _sum_by_settings(rows: QuerySet[Any], query: CompareQuery, config: str, count: str) -> list[tuple[Any, ...]]:
    """Return the rows summed by the values of SIDE_AXES.

    Args:
        rows: cells or pools.
        query: fixes the values of some axes.
        config: prefix of the columns of a configuration.
        count: prefix of the columns of counts.
    """
    fixed = {f"{config}{_COLUMNS[axis]}": value for axis, value in query.both.items() if axis in _COLUMNS}
    tried = Sum(F(f"{count}passed") + F(f"{count}failed") + F(f"{count}infra"))
    columns = [f"{config}{_COLUMNS[axis]}" for axis in SIDE_AXES]
    return list(rows.filter(**fixed).order_by().values_list(*columns).annotate(tried=tried))
