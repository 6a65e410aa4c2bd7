"""Data of the trend page of a schedule: runs and drift of each configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.evals.statistics.rounding import format_rounded
from toolbench.lab.date_texts import render_day
from toolbench.lab.metrics.provider_budget import render_dollars
from toolbench.lab.metrics.tally import add_tallies
from toolbench.lab.models import Alert, Run, Schedule
from toolbench.lab.schedules.page import AlertRow, list_alerts
from toolbench.lab.schedules.series import DRIFT_ERROR, MAX_RUNS_SHOWN, RunSeries, SeriesPoint, load_series

TARGET_PERCENT = 90
MEASURES: Mapping[str, str] = {
    "success": "Success, %",
    "p50": "p50, s",
    "p95": "p95, s",
    "p99": "p99, s",
    "cost": "Cost, $",
    "tokens": "Tokens, thousand",
}
_STATE_ORDER = {"worse": 0, "better": 1, "untested": 2, "steady": 3}


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """Value of a measure with its interval.

    Attributes:
        low: lower end; None if it is open or there is no interval.
        high: upper end; None if it is open or there is no interval.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One run of a trend line.

    Attributes:
        measured: value of the measure; None if it is unknown for the run.
        notes: remarks about the run: "baseline", "change begins" and "settings changed".
        is_baseline: whether the run is in the baseline.
        has_drifted: whether drift was found and had begun by this run.
    """

    point: SeriesPoint
    measured: MeasuredValue | None
    notes: tuple[str, ...]
    is_baseline: bool
    has_drifted: bool


@dataclass(frozen=True, slots=True)
class TrendLine:
    """Trend of one configuration.

    Attributes:
        state: a key of _STATE_ORDER.
        state_text: description of the state.
        latest: the newest known value as text; empty if there is none.
        pooled: answered success of several runs together, as text: of those since the drift began or, without drift, of
            those since the baseline. If there are none, of all runs of the series.
    """

    series: RunSeries
    state: str
    state_text: str
    latest: str
    pooled: str
    points: tuple[TrendPoint, ...]

    @property
    def detail(self) -> str:
        """Description of the configuration without its model."""
        config = self.series.config
        streamed = "streamed" if config.stream else ""
        parts = (config.provider_name, config.profile, config.strategy, config.method, config.examples, streamed)
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class TrendPage:
    """Data of the trend page.

    Attributes:
        schedules: all schedules, sorted by name.
        schedule: the chosen schedule; None if there is none.
        measure: a key of MEASURES.
        lines: one for each configuration, in the order of _STATE_ORDER.
        baseline_runs: runs of the baseline.
        alerts: open alerts of the schedule.
    """

    schedules: tuple[Schedule, ...]
    schedule: Schedule | None
    measure: str
    lines: tuple[TrendLine, ...] = ()
    baseline_runs: tuple[Run, ...] = ()
    alerts: tuple[AlertRow, ...] = ()

    @property
    def measure_title(self) -> str:
        """Name of the measure with its unit."""
        return MEASURES[self.measure]

    @property
    def error_percent(self) -> str:
        """Probability of a false alarm over all series, in percent."""
        return f"{100 * DRIFT_ERROR:g}"

    @property
    def is_simulated(self) -> bool:
        """Whether a shown run uses a simulated model."""
        return any(point.point.run.simulated for line in self.lines for point in line.points)

    def count_lines(self, state: str) -> int:
        """Return the number of lines in a state."""
        return sum(line.state == state for line in self.lines)

    @property
    def worse(self) -> int:
        """Number of lines whose success dropped."""
        return self.count_lines("worse")

    @property
    def better(self) -> int:
        """Number of lines whose success rose."""
        return self.count_lines("better")


def get_trend_page(schedule_id: int | None, measure: str) -> TrendPage:
    """Return the trend page of a schedule.

    Args:
        schedule_id: primary key of the schedule; None or an unknown id stands for the newest schedule.
        measure: a key of MEASURES; any other text stands for success.
    """
    measure = measure if measure in MEASURES else "success"
    schedules = tuple(Schedule.objects.all())
    newest = max(schedules, key=lambda schedule: schedule.pk, default=None)
    schedule = next((schedule for schedule in schedules if schedule.pk == schedule_id), newest)
    if schedule is None:
        return TrendPage(schedules, None, measure)
    lines = [_build_line(series, measure) for series in load_series(schedule)]
    lines.sort(key=lambda line: _STATE_ORDER[line.state])
    pinned = tuple(schedule.baseline_runs.filter(deleted_at=None).order_by("pk"))
    alerts = list_alerts(Alert.objects.filter(rule__schedule=schedule, resolved_at=None))
    return TrendPage(schedules, schedule, measure, tuple(lines), pinned, alerts)


def _build_line(series: RunSeries, measure: str) -> TrendLine:
    state, text = _describe_state(series)
    points = tuple(_build_points(series, measure))[-MAX_RUNS_SHOWN:]
    latest = next((point.measured for point in reversed(points) if point.measured), None)
    latest_text = format_value(latest.value, measure) if latest else ""
    return TrendLine(series, state, text, latest_text, _describe_pooled_success(series), points)


def _describe_state(series: RunSeries) -> tuple[str, str]:
    """Return the state (a key of _STATE_ORDER) and its description."""
    if series.untested:
        return "untested", f"Not tested: {series.untested}"
    if series.drift is None or series.drift_start is None:
        return "steady", "No drift shown"
    points, day = series.drift.points, render_day(series.drift_start.created_at)
    state, word = ("worse", "Down") if points < 0 else ("better", "Up")
    return state, f"{word} {format_rounded(abs(points))} points since {day}"


def _describe_pooled_success(series: RunSeries) -> str:
    since = series.since[series.drift.start_index :] if series.drift else series.since
    return add_tallies(point.tally for point in since or series.points).compute_answered_success().text


def _build_points(series: RunSeries, measure: str) -> list[TrendPoint]:
    pinned = {point.run.pk for point in series.baseline}
    start_id = series.drift_start.pk if series.drift_start else None
    points: list[TrendPoint] = []
    for index, point in enumerate(series.points):
        notes = ["baseline"] if point.run.pk in pinned else []
        if point.run.pk == start_id:
            notes.append("change begins")
        if index and point.policy_hash != series.points[index - 1].policy_hash:
            notes.append("settings changed")
        drifted = start_id is not None and point.run.pk >= start_id
        measured = _MEASURE_FUNCTIONS[measure](point)
        points.append(TrendPoint(point, measured, tuple(notes), point.run.pk in pinned, drifted))
    return points


def format_value(value: float, measure: str) -> str:
    """Return a value of a measure as text with its unit."""
    if measure == "success":
        return f"{format_rounded(value)} %"
    if measure == "cost":
        return render_dollars(value)
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{number} {'k' if measure == 'tokens' else 's'}"


def _measure_success(point: SeriesPoint) -> MeasuredValue | None:
    rate = point.answered
    if not rate.n:
        return None
    ends = (None, None) if rate.withheld else (100 * rate.low, 100 * rate.high)
    return MeasuredValue(100 * rate.share, *ends)


def _measure_cost(point: SeriesPoint) -> MeasuredValue | None:
    return None if point.tally.cost is None else MeasuredValue(point.tally.cost)


def _measure_tokens(point: SeriesPoint) -> MeasuredValue | None:
    tokens = point.tally.input_tokens + point.tally.output_tokens
    return MeasuredValue(tokens / 1000) if point.tally.tried and not point.tally.uncomputed_cells else None


def _build_time_function(quantile_name: str) -> Callable[[SeriesPoint], MeasuredValue | None]:
    def measure(point: SeriesPoint) -> MeasuredValue | None:
        quantile: Quantile | None = getattr(point.times, quantile_name)
        if quantile is None:
            return None
        low, high = (None if end is None else end / 1000 for end in (quantile.low, quantile.high))
        return MeasuredValue(quantile.value / 1000, low, high)

    return measure


_MEASURE_FUNCTIONS: Mapping[str, Callable[[SeriesPoint], MeasuredValue | None]] = {
    "success": _measure_success,
    "cost": _measure_cost,
    "tokens": _measure_tokens,
    **{name: _build_time_function(name) for name in ("p50", "p95", "p99")},
}


def list_values(points: Sequence[TrendPoint]) -> list[float]:
    """Return the values and upper interval ends of the points, from which an axis is scaled."""
    measured = [point.measured for point in points if point.measured]
    return [number for value in measured for number in (value.value, value.high) if number is not None]
