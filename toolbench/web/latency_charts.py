"""Drawings of the latency page: the coordinates of each, which the templates write as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.results.latency.page import LatencyPage, LatencyRow, TimeSummary

WIDTH, ROW_HEIGHT = 560, 28  # of the drawing of one row
CURVE_WIDTH, CURVE_HEIGHT = 420, 260
PANEL_WIDTH, PANEL_LINE = 260, 7
MAX_DOTS = 120  # of one row; more answers are drawn as evenly spaced order statistics
_CURVE_COLOURS = ("#1a1c20", "#80848b", "#5a3fb8")  # of a file; each twice, the second time dashed
MAX_CURVES = 2 * len(_CURVE_COLOURS)
SHARE_PERCENTS = (0, 25, 50, 75, 95, 100)
_CURVE_STEPS = 80
_AXIS_ROOM = 1.25  # the axis ends so far beyond the largest p95


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A mark of the time axis.

    Attributes:
        percent: its position on the axis, 0 to 100.
        x: its position in a panel.
        curve_x: its position in the chart of the curves.
    """

    label: str
    percent: float
    x: float
    curve_x: float


@dataclass(frozen=True, slots=True)
class TimeMark:
    """A quantile on the axis of a row.

    Attributes:
        x: of the value.
        low: of the lower bound; 0 where it is open.
        high: of the upper bound; the end of the axis where it is open.
    """

    x: float
    low: float
    high: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class DotRow:
    """The drawing of one configuration.

    Attributes:
        y: of its top in the whole chart.
        dots: an SVG path with a point for each dot.
    """

    row: LatencyRow
    y: int
    dots: str
    p50: TimeMark
    p95: TimeMark
    p99: TimeMark


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of answers within a time.

    Attributes:
        path: an SVG path of steps.
        number: of the line's style, from 0.
        colour, dashes: of the line in a file; the style sheet says those of the page.
        key_y: its place among the names beside the chart.
    """

    row: LatencyRow
    path: str
    number: int
    colour: str
    dashes: str
    key_y: int


@dataclass(frozen=True, slots=True)
class ShareLine:
    """A horizontal line of the chart of the curves."""

    label: str
    y: float


@dataclass(frozen=True, slots=True)
class PanelLine:
    """p50 and p95 of one configuration in one scenario."""

    y: int
    p50: float
    p95: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class ScenarioPanel:
    """One scenario, with a line per configuration in the order of the rows.

    Attributes:
        median: of the p50 of all configurations, in milliseconds.
        answers: the smallest and the largest number of answers of a configuration.
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
        end_ms: the end of the axis; later answers are drawn there.
        beyond: answers after the end of the axis.
        sampled: whether a row has more answers than dots.
        height: of the chart of all dots.
    """

    end_ms: float
    ticks: tuple[AxisTick, ...]
    rows: tuple[DotRow, ...]
    curves: tuple[Curve, ...]
    panels: tuple[ScenarioPanel, ...]
    shares: tuple[ShareLine, ...]
    beyond: int
    sampled: bool
    height: int


def build_latency_charts(page: LatencyPage) -> LatencyCharts:
    """Return the drawings of the rows of the page."""
    step_ms, end_ms = _choose_axis(page)
    count = int(end_ms / step_ms)
    labels = [f"{step_ms * number / 1000:g}" for number in range(count + 1)]
    labels[-1] += " s"
    ticks = tuple(
        AxisTick(label, *(round(width * number / count, 1) for width in (100, PANEL_WIDTH, CURVE_WIDTH)))
        for number, label in enumerate(labels)
    )
    rows = tuple(_draw_row(row, place, end_ms) for place, row in enumerate(page.rows))
    return LatencyCharts(
        end_ms,
        ticks,
        rows,
        tuple(_build_curve(row, place, end_ms) for place, row in enumerate(page.rows[:MAX_CURVES])),
        tuple(_build_panel(page, scenario, end_ms) for scenario in page.scenarios),
        tuple(ShareLine(str(percent), CURVE_HEIGHT * (1 - percent / 100)) for percent in SHARE_PERCENTS),
        sum(int((row.times > end_ms).sum()) for row in page.rows),
        any(len(row.times) > MAX_DOTS for row in page.rows),
        ROW_HEIGHT * len(rows),
    )


def _choose_axis(page: LatencyPage) -> tuple[float, float]:
    """Return the distance of the ticks and the end of the axis: three to six steps of 1, 2 or 5 times a power of 10.

    Every p95 and half of the p99 are on the axis.
    """
    largest = max((row.summary.p95.value for row in page.rows), default=0.0)
    p99 = [row.summary.p99.value for row in page.rows]
    least_end = max(largest * _AXIS_ROOM, compute_quantile(p99, 0.5).value if p99 else 0.0, 1.0)
    power = 10.0 ** math.floor(math.log10(least_end / 3))
    step = max(factor * power for factor in (1, 2, 5) if factor * power * 3 <= least_end * (1 + 1e-9))
    return step, step * math.ceil(least_end / step - 1e-9)


def _draw_row(row: LatencyRow, place: int, end_ms: float) -> DotRow:
    picked = _pick_evenly(row.times, MAX_DOTS)
    heights = np.random.default_rng(place).uniform(9, 19, len(picked))
    points = zip(_scale(picked, end_ms, WIDTH), heights, strict=True)
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)
    marks = (_build_mark(found, end_ms) for found in (row.summary.p50, row.summary.p95, row.summary.p99))
    return DotRow(row, place * ROW_HEIGHT, dots, *marks)


def _pick_evenly(times: np.ndarray, limit: int) -> np.ndarray:
    """Return all times, or `limit` order statistics with the smallest and the largest."""
    if len(times) <= limit:
        return times
    picked: np.ndarray = times[np.linspace(0, len(times) - 1, limit).round().astype(int)]
    return picked


def _scale(times: np.ndarray | float, end_ms: float, width: int) -> np.ndarray:
    return np.minimum(np.asarray(times, dtype=float) / end_ms, 1.0) * width


def _build_mark(found: Quantile, end_ms: float) -> TimeMark:
    ends = (found.value, 0.0 if found.low is None else found.low, end_ms if found.high is None else found.high)
    x, low, high = (round(float(_scale(end, end_ms, WIDTH)), 1) for end in ends)
    return TimeMark(x, low, high, found.high is None)


def _build_curve(row: LatencyRow, place: int, end_ms: float) -> Curve:
    colour, dashes = _CURVE_COLOURS[place // 2], "5 3" if place % 2 else "none"
    return Curve(row, _draw_curve(row, end_ms), place, colour, dashes, 56 + 22 * place)


def _draw_curve(row: LatencyRow, end_ms: float) -> str:
    """Return the empirical distribution as steps, exact at _CURVE_STEPS order statistics."""
    times = row.times
    ranks = np.unique(np.linspace(1, len(times), min(len(times), _CURVE_STEPS)).round().astype(int))
    xs = _scale(times[ranks - 1], end_ms, CURVE_WIDTH)
    ys = CURVE_HEIGHT * (1 - ranks / len(times))
    return f"M0 {CURVE_HEIGHT}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(xs, ys, strict=True)) + f"H{CURVE_WIDTH}"


def _build_panel(page: LatencyPage, scenario: str, end_ms: float) -> ScenarioPanel:
    found = [(place, row.scenarios[scenario]) for place, row in enumerate(page.rows) if scenario in row.scenarios]
    lines = tuple(_build_line(place, summary, end_ms) for place, summary in found)
    summaries: Sequence[TimeSummary] = [summary for _, summary in found]
    counts = [summary.n for summary in summaries]
    return ScenarioPanel(
        scenario,
        compute_quantile([summary.p50.value for summary in summaries], 0.5).value,
        (min(counts), max(counts)),
        lines,
        PANEL_LINE * (len(page.rows) + 1),
    )


def _build_line(place: int, summary: TimeSummary, end_ms: float) -> PanelLine:
    p50, p95 = (round(float(_scale(found.value, end_ms, PANEL_WIDTH)), 1) for found in (summary.p50, summary.p95))
    return PanelLine(PANEL_LINE * (place + 1), p50, p95, summary.p95.is_open)
