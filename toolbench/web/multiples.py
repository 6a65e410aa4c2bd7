"""Small multiples of the trend page: one drawing for each configuration, as coordinates for SVG."""

import math
from dataclasses import dataclass

from toolbench.lab.date_texts import render_day, render_moment
from toolbench.lab.schedules.trend import TARGET_PERCENT, TrendLine, TrendPage, TrendPoint, format_value, list_values

WIDTH, HEIGHT = 310, 112  # size of a drawing in SVG units, the unit of all coordinates
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 302, 12, 88


@dataclass(frozen=True, slots=True)
class ChartDot:
    """Dot of one run in a drawing.

    Attributes:
        kind: CSS class: the state of the series for a run with drift, `pinned` for a run of the baseline; else empty.
        title: text of the tooltip.
    """

    x: float
    y: float
    kind: str
    title: str
    run_id: int


@dataclass(frozen=True, slots=True)
class GridLine:
    """Horizontal grid line with its label."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Multiple:
    """Drawing of the series of one configuration.

    Attributes:
        band: corners of the area between the interval bounds, as an SVG `points` attribute; may be empty.
        paths: parts of the line as SVG `points` attributes, each of two or more consecutive runs with a value.
        drift_x: x coordinate of the first run with drift; None without drift.
        target_y: y coordinate of the target line; None for a measure without a target.
        first_day: label of the first run's day; empty without runs.
        last_day: label of the last run's day; empty with fewer than two runs.
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
    """Return one drawing for each series, all with the same vertical axis."""
    values = [value for line in page.lines for value in list_values(line.points)]
    top = 100.0 if page.measure == "success" else _find_axis_top(max(values, default=0.0))
    return tuple(_build_multiple(line, page.measure, top) for line in page.lines)


def _find_axis_top(largest: float) -> float:
    """Return the smallest number of the form 1, 2 or 5 times a power of ten that is at least `largest`.

    If `largest` is not positive, return 1.
    """
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= largest)


def _build_multiple(line: TrendLine, measure: str, top: float) -> Multiple:
    points = line.points
    step = (_RIGHT - _LEFT) / max(1, len(points) - 1)
    xs = [round(_LEFT + step * index, 1) if len(points) > 1 else (_LEFT + _RIGHT) / 2 for index in range(len(points))]
    measured = [(x, point) for x, point in zip(xs, points, strict=True) if point.measured]
    drift_xs = [x for x, point in zip(xs, points, strict=True) if point.has_drifted]
    days = [render_day(point.point.run.created_at) for point in points]
    return Multiple(
        line,
        tuple(_build_dot(x, point, line.state, measure, top) for x, point in measured),
        _draw_band(measured, top),
        _draw_paths(xs, points, top),
        tuple(GridLine(_scale(share * top, top), _format_label(share * top)) for share in (1.0, 0.5, 0.0)),
        drift_xs[0] if drift_xs else None,
        _scale(TARGET_PERCENT, top) if measure == "success" else None,
        days[0] if days else "",
        days[-1] if len(days) > 1 else "",
    )


def _format_label(value: float) -> str:
    """Return the number with thousands separators, without an exponent or trailing zeros in the fraction."""
    return f"{value:,.10f}".rstrip("0").rstrip(".")


def _scale(value: float, top: float) -> float:
    """Return the vertical position of a value on an axis from 0 to `top`."""
    return round(_BOTTOM - (_BOTTOM - _TOP) * min(value, top) / top, 1)


def _build_dot(x: float, point: TrendPoint, state: str, measure: str, top: float) -> ChartDot:
    assert point.measured is not None
    kind = state if point.has_drifted else "pinned" if point.is_baseline else ""
    run = point.point.run
    value = point.point.answered.text if measure == "success" else format_value(point.measured.value, measure)
    notes = f" · {', '.join(point.notes)}" if point.notes else ""
    title = f"Run {run.pk}, {render_moment(run.created_at)} UTC: {value}{notes}"
    return ChartDot(x, _scale(point.measured.value, top), kind, title, run.pk)


def _draw_band(measured: list[tuple[float, TrendPoint]], top: float) -> str:
    """Return the corners of the area between the lower and the upper bounds, as an SVG `points` attribute.

    Runs without both bounds are left out. The text is empty if fewer than two runs remain.
    """
    upper, lower = [], []
    for x, point in measured:
        value = point.measured
        if value and value.low is not None and value.high is not None:
            upper.append(f"{x},{_scale(value.high, top)}")
            lower.append(f"{x},{_scale(value.low, top)}")
    return " ".join(upper + lower[::-1]) if len(upper) > 1 else ""


def _draw_paths(xs: list[float], points: tuple[TrendPoint, ...], top: float) -> tuple[str, ...]:
    """Return the parts of the line as SVG `points` attributes.

    A run without a value ends a part. A part with only one run is left out.
    """
    paths: list[list[str]] = [[]]
    for x, point in zip(xs, points, strict=True):
        if point.measured:
            paths[-1].append(f"{x},{_scale(point.measured.value, top)}")
        elif paths[-1]:
            paths.append([])
    return tuple(" ".join(path) for path in paths if len(path) > 1)
