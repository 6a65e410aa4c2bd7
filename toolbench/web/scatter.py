"""Drawing of a decision: end-to-end success against p95, as coordinates for SVG.

The success axis is stretched towards 100 %, where candidates are close together: it is linear in log(101.5 − percent).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.rounding import round_half_up
from toolbench.lab.results.decide.page import DecidePage, DecideRow

MAX_NUMBERED = 12  # number of points that have their number beside them
MAX_POINTS = 40
_CEILING = 101.5  # percent; a ceiling closer to 100 would stretch the end of the axis more
_SUCCESS_TICKS = (0, 20, 40, 60, 80, 90, 95, 98, 100)
_TIME_STEPS_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_MAX_TIME_TICKS = 6
Placement = Callable[[float], float]  # returns the coordinate of a time in seconds or of a success in percent
_MARGINS = {"left": 34, "right": 10, "top": 14, "bottom": 34}


@dataclass(frozen=True, slots=True)
class ScatterTick:
    """A tick; `at` is its coordinate on its axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """A candidate with its coordinates in the drawing.

    Attributes:
        x, y: coordinates of p95 and of end-to-end success.
        left, right: ends of the interval of p95; at an open bound, the left one is p95 itself, and the right one is the
            edge of the field.
        is_open: whether p95 has no upper bound.
        top, bottom: ends of the interval of success.
        number: number of the row, shown beside the point; "" after the first MAX_NUMBERED points.
    """

    row: DecideRow
    x: float
    y: float
    left: float
    right: float
    is_open: bool
    top: float
    bottom: float
    number: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Drawing of the candidates.

    Attributes:
        left, right, top, bottom: coordinates of the edges of the field that has the points.
        limit_x: coordinate of the limit of p95; the right edge if there is no limit or it is beyond that edge.
        has_limit: whether there is a limit of p95 left of the right edge.
        target_y: coordinate of the required success.
    """

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    points: tuple[ScatterPoint, ...]
    time_ticks: tuple[ScatterTick, ...]
    success_ticks: tuple[ScatterTick, ...]
    limit_x: float
    has_limit: bool
    target_y: float

    @property
    def allowed_width(self) -> float:
        """Return the width of the area in which p95 and success meet the decision rule."""
        return round_half_up(self.limit_x - self.left, 1)

    @property
    def allowed_height(self) -> float:
        """Return the height of the area in which p95 and success meet the decision rule."""
        return round_half_up(self.target_y - self.top, 1)


def build_scatters(page: DecidePage) -> tuple[Scatter, ...]:
    """Return the drawing for wide windows and the one for phones; () without a row that has a p95.

    Each shows the first MAX_POINTS rows with a p95, which are the best by the rule.
    """
    rows = [row for row in page.rows if row.assessment.p95][:MAX_POINTS]
    return tuple(_build_scatter(page, rows, width, height) for width, height in ((820, 330), (340, 300)) if rows)


def _build_scatter(page: DecidePage, rows: Sequence[DecideRow], width: int, height: int) -> Scatter:
    left, right = _MARGINS["left"], width - _MARGINS["right"]
    top, bottom = _MARGINS["top"], height - _MARGINS["bottom"]
    rule = page.decision.rule
    longest, floor = _find_longest_seconds(rows, rule.within_ms), _find_floor(rows, rule.success)

    def place_time(seconds: float) -> float:
        return round_half_up(left + (right - left) * min(seconds / longest, 1), 1)

    def place_success(percent: float) -> float:
        share = (_stretch(max(percent, floor)) - _stretch(floor)) / (_stretch(100) - _stretch(floor))
        return round_half_up(bottom - (bottom - top) * share, 1)

    points = tuple(
        _build_point(row, place_time, place_success, number=str(row.number) if index < MAX_NUMBERED else "")
        for index, row in enumerate(rows)
    )
    limit = None if rule.within_ms is None else rule.within_ms / 1000
    has_limit = limit is not None and limit < longest
    return Scatter(
        width, height, left, right, top, bottom, points,
        tuple(ScatterTick(place_time(seconds), f"{seconds:g}") for seconds in _list_time_ticks(longest)),
        tuple(ScatterTick(place_success(tick), str(tick)) for tick in _SUCCESS_TICKS if tick >= floor),
        place_time(limit) if limit is not None else right, has_limit, place_success(rule.success),
    )  # fmt: skip


def _build_point(row: DecideRow, place_time: Placement, place_success: Placement, *, number: str) -> ScatterPoint:
    p95 = row.assessment.p95
    assert p95 is not None  # rows without one were left out
    return ScatterPoint(
        row=row,
        x=place_time(p95.value / 1000),
        y=place_success(row.end_to_end.axis),
        left=place_time((p95.value if p95.low is None else p95.low) / 1000),
        right=place_time(math.inf if p95.high is None else p95.high / 1000),
        is_open=p95.high is None,
        top=place_success(row.end_to_end.high_axis),
        bottom=place_success(row.end_to_end.low_axis),
        number=number,
    )


def _stretch(percent: float) -> float:
    """Return the position of a success in percent on the stretched axis, which has no unit."""
    return -math.log(_CEILING - percent)


def _find_longest_seconds(rows: Sequence[DecideRow], within_ms: float | None) -> float:
    """Return the end of the time axis in seconds.

    The end is 1.1 times the largest of these times, but at least 0.001 s:
    - each p95;
    - the upper bound of each p95, which counts as at most twice the p95;
    - the limit `within_ms`, unless it is more than three times the largest of the others.
    """
    quantiles = [row.assessment.p95 for row in rows if row.assessment.p95]
    longest_ms = max(
        max(p95.value, p95.value if p95.high is None else min(p95.high, 2 * p95.value)) for p95 in quantiles
    )
    if within_ms is not None and within_ms <= 3 * longest_ms:
        longest_ms = max(longest_ms, within_ms)
    return max(1.1 * longest_ms / 1000, 0.001)


def _find_floor(rows: Sequence[DecideRow], target: float) -> int:
    """Return the lower end of the success axis in percent.

    This is the highest tick below every interval and the target; 0 if there is none.
    """
    lowest = min([target, *(row.end_to_end.low_axis for row in rows)])
    return max((tick for tick in _SUCCESS_TICKS if tick < lowest), default=0)


def _list_time_ticks(longest: float) -> list[float]:
    step = next((step for step in _TIME_STEPS_SECONDS if longest / step <= _MAX_TIME_TICKS), _TIME_STEPS_SECONDS[-1])
    return [step * number for number in range(math.floor(longest / step) + 1)]
