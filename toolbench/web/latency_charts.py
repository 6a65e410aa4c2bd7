"""Drawings of the latency page: coordinates and paths in SVG units, which the templates write as SVG."""

import math
from dataclasses import dataclass

import numpy as np

from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.results.latency.page import LatencyPage, LatencyRow, TimeSummary

WIDTH, ROW_HEIGHT = 560, 28  # size of the drawing of one row
CURVE_WIDTH, CURVE_HEIGHT = 420, 260
PANEL_WIDTH, PANEL_LINE_HEIGHT = 260, 7
MAX_DOTS = 120  # in one row; more answers are drawn as evenly spaced order statistics
_CURVE_COLOURS = ("#1a1c20", "#80848b", "#5a3fb8")  # in SVG files; each is used for a solid and for a dashed line
MAX_CURVES = 2 * len(_CURVE_COLOURS)
SHARE_PERCENTS = (0, 25, 50, 75, 95, 100)
_CURVE_STEPS = 80  # of one curve, at most
_AXIS_FACTOR = 1.25  # the end of the axis is at least this many times the largest p95


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A mark of the time axis.

    Attributes:
        label: the time in seconds; the last label ends in " s".
        percent: position of the mark on the axis, 0 to 100.
        x: coordinate of the mark in a panel.
        curve_x: coordinate of the mark in the chart of the curves.
    """

    label: str
    percent: float
    x: float
    curve_x: float


@dataclass(frozen=True, slots=True)
class TimeMark:
    """A quantile on the axis of a row.

    Attributes:
        x: coordinate of the value.
        low: coordinate of the lower bound; 0 if the bound is open.
        high: coordinate of the upper bound; the end of the axis if the bound is open.
        is_open: whether the upper bound is open.
    """

    x: float
    low: float
    high: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class DotRow:
    """The drawing of one configuration.

    Attributes:
        y: coordinate of the top of the row in the chart of all rows.
        dots: an SVG path with a point for each dot.
        p50, p95, p99: the quantiles; the bounds of p50 are not drawn.
    """

    row: LatencyRow
    y: int
    dots: str
    p50: TimeMark
    p95: TimeMark
    p99: TimeMark


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one configuration: the share of answers within a time.

    Attributes:
        path: an SVG path of steps.
        number: number of the curve, from 0, by which the style sheet of the page chooses colour and dashes.
        colour: colour of the curve in an SVG file.
        dashes: dashes of the curve in an SVG file, as the attribute `stroke-dasharray`.
        key_y: coordinate of the curve's name beside the chart in an SVG file.
    """

    row: LatencyRow
    path: str
    number: int
    colour: str
    dashes: str
    key_y: int


@dataclass(frozen=True, slots=True)
class ShareLine:
    """A horizontal grid line of the chart of the curves; its label is a share in percent."""

    label: str
    y: float


@dataclass(frozen=True, slots=True)
class PanelLine:
    """p50 and p95 of one configuration in one scenario.

    Attributes:
        y: coordinate of the line.
        p50, p95: coordinates of the quantiles on the time axis.
        is_open: whether a bound of p95 is open.
    """

    y: int
    p50: float
    p95: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class ScenarioPanel:
    """One scenario, with a line for each configuration that has answers, in the order of the rows.

    Attributes:
        median: median of the p50 of these configurations, in milliseconds.
        answers: the smallest and the largest number of answers of a configuration.
        height: height of the panel.
    """

    scenario: str
    median: float
    answers: tuple[int, int]
    lines: tuple[PanelLine, ...]
    height: int


@dataclass(frozen=True, slots=True)
class LatencyCharts:
    """All drawings of the page, on one time axis.

    Attributes:
        end_ms: end of the axis in milliseconds; longer times are drawn at the end.
        curves: curves of the first MAX_CURVES rows.
        beyond_count: number of answers that took longer than the axis shows.
        is_sampled: whether a row has more answers than dots.
        height: height of the chart of all rows.
    """

    end_ms: float
    ticks: tuple[AxisTick, ...]
    rows: tuple[DotRow, ...]
    curves: tuple[Curve, ...]
    panels: tuple[ScenarioPanel, ...]
    shares: tuple[ShareLine, ...]
    beyond_count: int
    is_sampled: bool
    height: int


def build_latency_charts(page: LatencyPage) -> LatencyCharts:
    """Return the drawings of the rows of the page."""
    step_ms, end_ms = _choose_axis(page)
    step_count = int(end_ms / step_ms)
    labels = [f"{step_ms * number / 1000:g}" for number in range(step_count + 1)]
    labels[-1] += " s"
    ticks = tuple(
        AxisTick(label, *(round(width * number / step_count, 1) for width in (100, PANEL_WIDTH, CURVE_WIDTH)))
        for number, label in enumerate(labels)
    )
    rows = tuple(_draw_row(row, index, end_ms) for index, row in enumerate(page.rows))
    return LatencyCharts(
        end_ms,
        ticks,
        rows,
        tuple(_build_curve(row, index, end_ms) for index, row in enumerate(page.rows[:MAX_CURVES])),
        tuple(_build_panel(page, scenario, end_ms) for scenario in page.scenarios),
        tuple(ShareLine(str(percent), CURVE_HEIGHT * (1 - percent / 100)) for percent in SHARE_PERCENTS),
        sum(int((row.times > end_ms).sum()) for row in page.rows),
        any(len(row.times) > MAX_DOTS for row in page.rows),
        ROW_HEIGHT * len(rows),
    )


def _choose_axis(page: LatencyPage) -> tuple[float, float]:
    """Return the distance between two ticks and the end of the axis, both in milliseconds.

    The axis has three to eight steps of 1, 2 or 5 times a power of 10. It shows every p95 and at least half of the
    p99 values.
    """
    largest_p95 = max((row.summary.p95.value for row in page.rows), default=0.0)
    p99_values = [row.summary.p99.value for row in page.rows]
    least_end = max(largest_p95 * _AXIS_FACTOR, compute_quantile(p99_values, 0.5).value if p99_values else 0.0, 1.0)
    power = 10.0 ** math.floor(math.log10(least_end / 3))
    step = max(factor * power for factor in (1, 2, 5) if factor * power * 3 <= least_end * (1 + 1e-9))
    return step, step * math.ceil(least_end / step - 1e-9)


def _draw_row(row: LatencyRow, index: int, end_ms: float) -> DotRow:
    times = _pick_evenly(row.times, MAX_DOTS)
    # Random heights keep equal times apart; the seed makes them the same whenever the row is drawn.
    heights = np.random.default_rng(index).uniform(9, 19, len(times))
    points = zip(_scale(times, end_ms, WIDTH), heights, strict=True)
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)
    marks = (_build_mark(quantile, end_ms) for quantile in (row.summary.p50, row.summary.p95, row.summary.p99))
    return DotRow(row, index * ROW_HEIGHT, dots, *marks)


def _pick_evenly(times: np.ndarray, limit: int) -> np.ndarray:
    """Return at most `limit` of the sorted times, evenly spaced by rank, with the smallest and the largest."""
    if len(times) <= limit:
        return times
    picked: np.ndarray = times[np.linspace(0, len(times) - 1, limit).round().astype(int)]
    return picked


def _scale(times: np.ndarray | float, end_ms: float, width: int) -> np.ndarray:
    """Return the coordinates of times in milliseconds on an axis of this width.

    Times after `end_ms` are at the end of the axis.
    """
    return np.minimum(np.asarray(times, dtype=float) / end_ms, 1.0) * width


def _build_mark(quantile: Quantile, end_ms: float) -> TimeMark:
    low_ms = 0.0 if quantile.low is None else quantile.low
    ends = (quantile.value, low_ms, end_ms if quantile.high is None else quantile.high)
    x, low, high = (round(float(_scale(end, end_ms, WIDTH)), 1) for end in ends)
    return TimeMark(x, low, high, quantile.high is None)


def _build_curve(row: LatencyRow, index: int, end_ms: float) -> Curve:
    colour, dashes = _CURVE_COLOURS[index // 2], "5 3" if index % 2 else "none"
    return Curve(row, _draw_curve(row, end_ms), index, colour, dashes, 56 + 22 * index)


def _draw_curve(row: LatencyRow, end_ms: float) -> str:
    """Return the empirical distribution as an SVG path of steps, exact at up to _CURVE_STEPS order statistics."""
    times = row.times
    ranks = np.unique(np.linspace(1, len(times), min(len(times), _CURVE_STEPS)).round().astype(int))
    xs = _scale(times[ranks - 1], end_ms, CURVE_WIDTH)
    ys = CURVE_HEIGHT * (1 - ranks / len(times))
    return f"M0 {CURVE_HEIGHT}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(xs, ys, strict=True)) + f"H{CURVE_WIDTH}"


def _build_panel(page: LatencyPage, scenario: str, end_ms: float) -> ScenarioPanel:
    summaries_by_index = {
        index: row.scenarios[scenario] for index, row in enumerate(page.rows) if scenario in row.scenarios
    }
    lines = tuple(_build_line(index, summary, end_ms) for index, summary in summaries_by_index.items())
    summaries = summaries_by_index.values()
    counts = [summary.n for summary in summaries]
    return ScenarioPanel(
        scenario,
        compute_quantile([summary.p50.value for summary in summaries], 0.5).value,
        (min(counts), max(counts)),
        lines,
        PANEL_LINE_HEIGHT * (len(page.rows) + 1),
    )


def _build_line(index: int, summary: TimeSummary, end_ms: float) -> PanelLine:
    p50, p95 = (round(float(_scale(value, end_ms, PANEL_WIDTH)), 1) for value in (summary.p50.value, summary.p95.value))
    return PanelLine(PANEL_LINE_HEIGHT * (index + 1), p50, p95, summary.p95.is_open)
