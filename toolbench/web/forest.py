"""The forest plot of a comparison: a row with links for each side, all on one axis."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.rounding import round_half_up
from toolbench.lab.results.compare.baseline import ComparedSide
from toolbench.lab.results.compare.query import CompareQuery

_STEPS = (2, 5, 10, 25, 50)  # possible distances of two ticks, in percentage points
_MAX_STEPS = 6  # in the range of the values; the axis is up to two steps longer, since it begins and ends at a tick


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of the axis; `x` is its position in percent of the width of the axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A side with the positions of its difference, in percent of the width of the axis.

    Attributes:
        label: name of the side, as `shorten_names` returns it.
        low, high: positions of the bounds of the interval; None without a difference.
        value: position of the difference from the baseline; None without a difference.
        pin_query: query string with this side as the baseline; "" for the baseline.
        remove_query: query string without this side; "" for the baseline, or if only two sides are compared.
        pair_query: query string that compares only the baseline and this side; "" if `remove_query` is "".
    """

    side: ComparedSide
    label: str
    low: float | None
    value: float | None
    high: float | None
    pin_query: str
    remove_query: str
    pair_query: str


@dataclass(frozen=True, slots=True)
class Forest:
    """All rows with their shared axis.

    Attributes:
        rows: the sides, the baseline first.
        zero: position of no difference, in percent of the width of the axis.
        margin_low, margin_high: positions of the smallest decrease and increase that are worth detecting.
    """

    rows: tuple[ForestRow, ...]
    ticks: tuple[Tick, ...]
    zero: float
    margin_low: float
    margin_high: float

    @property
    def others(self) -> tuple[ForestRow, ...]:
        """Return all rows except that of the baseline."""
        return self.rows[1:]


def build_forest(query: CompareQuery, sides: Sequence[ComparedSide]) -> Forest:
    """Return the plot of the sides of a query; the first of `sides` is the baseline."""
    margin = query.points
    differences = [side.compared.difference for side in sides if side.compared and side.compared.difference]
    ends = [100 * end for difference in differences for end in (difference.low, difference.high)]
    least, most = min([*ends, -1.5 * margin]), max([*ends, 1.5 * margin])
    step = next((step for step in _STEPS if (most - least) / step <= _MAX_STEPS), _STEPS[-1])
    low, high = step * math.floor(least / step), step * math.ceil(most / step)

    def place(points: float) -> float:
        return round_half_up(100 * (points - low) / (high - low), 1)

    ticks = tuple(Tick(place(points), _format_tick(points)) for points in range(low, high + 1, step))
    labels = shorten_names([side.name for side in sides])
    rows = tuple(_build_row(query, side, label, place) for side, label in zip(sides, labels, strict=True))
    return Forest(rows, ticks, place(0), place(-margin), place(margin))


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return the names without the text up to the last slash; unchanged if two would then be equal."""
    short = [name.rpartition("/")[2] for name in names]
    return short if len(set(short)) == len(short) else list(names)


def _format_tick(points: int) -> str:
    return f"+{points}" if points > 0 else str(points).replace("-", "−")


def _build_row(query: CompareQuery, side: ComparedSide, label: str, place: Callable[[float], float]) -> ForestRow:
    is_removable = query.has_more_than_two and not side.is_baseline
    difference = side.compared.difference if side.compared else None
    ends = (difference.low, difference.value, difference.high) if difference else ()
    low, value, high = (place(100 * end) for end in ends) if ends else (None, None, None)
    return ForestRow(
        side=side,
        label=label,
        low=low,
        value=value,
        high=high,
        pin_query="" if side.is_baseline else query.build_pin_query(side.number),
        remove_query=query.build_remove_query(side.number) if is_removable else "",
        pair_query=query.select_pair(side.number).query() if is_removable else "",
    )
