"""Small multiples of the trend page: the coordinates of each drawing, which the template writes as SVG."""

import math
from dataclasses import dataclass

from toolbench.lab.schedules.trend import TARGET_PERCENT, TrendLine, TrendPage, TrendPoint, list_values

WIDTH, HEIGHT = 310, 112
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 302, 12, 88


@dataclass(frozen=True, slots=True)
class ChartDot:
    """A run in a drawing."""

    x: float
    y: float
    kind: str
    title: str
    run_id: int


@dataclass(frozen=True, slots=True)
class GridLine:
    """A horizontal line with its label."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Multiple:
    """The drawing of one configuration.

    Attributes:
        band: corners of the intervals, as SVG wants them.
        paths: corners of the line, one for each stretch without a gap.
        drift_x: where the change begins; None without one.
        target_y: of the target; None where the measure has none.
    """

    line: TrendLine
    dots: tuple[ChartDot, ...]
    band: str
    paths: tuple[str, ...]
    grid: tuple[GridLine, ...]
    drift_x: float | None
    target_y: float | None
    first_day: str
    last_day: str


def build_multiples(page: TrendPage) -> tuple[Multiple, ...]:
    """Return one drawing per line, all on the same axis."""
    values = [value for line in page.lines for value in list_values(line.points)]
    top = 100.0 if page.measure == "success" else _find_axis_top(max(values, default=0.0))
    return tuple(_build_multiple(line, page.measure, top) for line in page.lines)


def _find_axis_top(largest: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least the largest value."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= largest)


def _build_multiple(line: TrendLine, measure: str, top: float) -> Multiple:
    points = line.points
    step = (_RIGHT - _LEFT) / max(1, len(points) - 1)
    places = [
        round(_LEFT + step * number, 1) if len(points) > 1 else (_LEFT + _RIGHT) / 2 for number in range(len(points))
    ]
    measured = [(x, point) for x, point in zip(places, points, strict=True) if point.measured]
    starts = [x for x, point in zip(places, points, strict=True) if point.drifted]
    days = [f"{point.point.run.created_at:%-d %b}" for point in points]
    return Multiple(
        line,
        tuple(_build_dot(x, point, line.state, measure, top) for x, point in measured),
        _draw_band(measured, top),
        _draw_paths(places, points, top),
        tuple(GridLine(_scale(share * top, top), f"{share * top:g}") for share in (1.0, 0.5, 0.0)),
        starts[0] if starts else None,
        _scale(TARGET_PERCENT, top) if measure == "success" else None,
        days[0] if days else "",
        days[-1] if len(days) > 1 else "",
    )


def _scale(value: float, top: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * min(value, top) / top, 1)


def _build_dot(x: float, point: TrendPoint, state: str, measure: str, top: float) -> ChartDot:
    assert point.measured is not None
    kind = state if point.drifted else "pinned" if point.pinned else ""
    run = point.point.run
    value = point.point.answered.text if measure == "success" else f"{point.measured.value:.4g}"
    notes = f" · {', '.join(point.notes)}" if point.notes else ""
    title = f"Run {run.pk}, {run.created_at:%-d %b %H:%M}: {value}{notes}"
    return ChartDot(x, _scale(point.measured.value, top), kind, title, run.pk)


def _draw_band(measured: list[tuple[float, TrendPoint]], top: float) -> str:
    """Return the corners of the area between lower and upper ends of runs that have both."""
    ends = [(x, point.measured) for x, point in measured]
    closed = [(x, found.low, found.high) for x, found in ends if found and None not in (found.low, found.high)]
    upper = [f"{x},{_scale(high, top)}" for x, _, high in closed if high is not None]
    lower = [f"{x},{_scale(low, top)}" for x, low, _ in reversed(closed) if low is not None]
    return " ".join(upper + lower) if len(closed) > 1 else ""


def _draw_paths(places: list[float], points: tuple[TrendPoint, ...], top: float) -> tuple[str, ...]:
    stretches: list[list[str]] = [[]]
    for x, point in zip(places, points, strict=True):
        if point.measured:
            stretches[-1].append(f"{x},{_scale(point.measured.value, top)}")
        elif stretches[-1]:
            stretches.append([])
    return tuple(" ".join(stretch) for stretch in stretches if len(stretch) > 1)
