"""Series of a schedule: the runs of each configuration, with counts, times, cost and drift."""

import hashlib
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.drift import Drift, RunSample, find_drift
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times, merge_times
from toolbench.lab.models import Cell, Run, RunConfig, Schedule

# Largest probability that the test ever finds drift in a series of a schedule, if none of them changes.
DRIFT_ERROR = 0.05
MAX_TESTED_RUNS = 500  # the drift test ends after so many runs since the baseline
MAX_RUNS_SHOWN = 60  # newest runs that pages show


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One run of one configuration.

    Attributes:
        tally: counts of the tool scenarios; of the control scenarios if the configuration has no others in this run.
        times: times of the same scenarios; empty if the run is not among the newest MAX_RUNS_SHOWN.
        sample: input of the drift test.
        policy_hash: hash of the configuration's settings.
    """

    run: Run
    config_id: int
    tally: Tally
    times: Times
    sample: RunSample
    policy_hash: str

    @property
    def answered(self) -> Rate:
        """Answered success."""
        return self.tally.compute_answered_success()


@dataclass(frozen=True, slots=True)
class RunSeries:
    """Runs of one configuration of a schedule.

    Attributes:
        key: key of the configuration, equal in all runs of the schedule.
        config: the configuration in the newest run.
        points: oldest first: the newest MAX_RUNS_SHOWN runs of the schedule, its baseline, and the runs to test.
        baseline: points of the baseline's runs.
        since: points of the first MAX_TESTED_RUNS runs after the newest run of the baseline.
        drift: the drift that the test found; None if the test found none or was not made.
        untested: why the drift test was not made, or why it ended without drift; empty otherwise.
    """

    key: str
    config: RunConfig
    points: tuple[SeriesPoint, ...]
    baseline: tuple[SeriesPoint, ...]
    since: tuple[SeriesPoint, ...]
    drift: Drift | None
    untested: str

    @property
    def label(self) -> str:
        """Name of the configuration."""
        return str(self.config)

    @property
    def drift_start(self) -> Run | None:
        """The run at which the drift began; None without drift."""
        return self.since[self.drift.start_index].run if self.drift else None


def load_series(schedule: Schedule) -> tuple[RunSeries, ...]:
    """Return the series of a schedule from its finished runs and its baseline.

    Cancelled runs are left out, since they have only some of the trials of the plan. The series are in the order in
    which their configurations first occur.
    """
    baseline_ids = set(schedule.baseline_runs.filter(deleted_at=None).values_list("pk", flat=True))
    finished = schedule.runs.filter(deleted_at=None, state=Run.State.FINISHED)
    newest = finished.order_by("-pk")[:MAX_RUNS_SHOWN]
    tested = (
        list(finished.filter(pk__gt=max(baseline_ids)).order_by("pk")[: MAX_TESTED_RUNS + 1]) if baseline_ids else []
    )
    runs = {run.pk: run for run in (*newest, *tested, *Run.objects.filter(pk__in=baseline_ids))}
    points = _load_points(runs)
    return tuple(
        _build_series(key, config, series_points, baseline_ids, max_error=DRIFT_ERROR / len(points))
        for key, (config, series_points) in points.items()
    )


def build_series_key(config: RunConfig) -> str:
    """Return the key of a configuration, equal in all runs of a schedule.

    A configuration with method `auto` keeps its key if `auto` chooses another method.
    """
    parts = (
        config.model_id or f"{config.provider_name}/{config.model_name}",
        config.profile,
        config.strategy,
        config.examples,
        config.stream,
        config.tool_use_mode,
        "auto" if config.routing else config.method,
    )
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:32]


def _load_points(runs: dict[int, Run]) -> dict[str, tuple[RunConfig, list[SeriesPoint]]]:
    """Return each configuration, as in the newest run, with its points, oldest first, by the key of the series."""
    cells = (
        Cell.objects.filter(run__in=runs).select_related("config").order_by("run_id", "config__position", "position")
    )
    by_config: dict[RunConfig, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_config[cell.config].append(cell)
    shown_ids = sorted(runs)[-MAX_RUNS_SHOWN:]
    times = load_cell_times(cell for group in by_config.values() for cell in group if cell.run_id in shown_ids)
    series: dict[str, tuple[RunConfig, list[SeriesPoint]]] = {}
    for config, config_cells in by_config.items():
        counted = [cell for cell in config_cells if not cell.control] or config_cells
        point = _build_point(
            runs[config.run_id], config, counted, merge_times(times.get(cell.pk, Times()) for cell in counted)
        )
        key = build_series_key(config)
        _, earlier_points = series.get(key, (config, []))
        series[key] = (config, [*earlier_points, point])
    return series


def _build_point(run: Run, config: RunConfig, cells: Sequence[Cell], times: Times) -> SeriesPoint:
    tally = tally_cells(cells)
    answer_counts = tuple(
        sorted(
            (f"{cell.scenario} v{cell.scenario_version} {cell.instance_kind}", _count_answers(cell)) for cell in cells
        )
    )
    return SeriesPoint(run, config.pk, tally, times, RunSample(tally.passed, answer_counts), config.policy_hash)


def _count_answers(cell: Cell) -> int:
    """Return the number of trials of a cell with an answer, as `Tally.answered` counts them."""
    return cell.passed + cell.failed - cell.deadline_failed


def _build_series(
    key: str, config: RunConfig, points: Sequence[SeriesPoint], baseline_ids: Container[int], *, max_error: float
) -> RunSeries:
    baseline = tuple(point for point in points if point.run.pk in baseline_ids)
    newest_id = max((point.run.pk for point in baseline), default=None)
    later = tuple(point for point in points if newest_id is not None and point.run.pk > newest_id)
    untested = _find_obstacle(points, baseline)
    since = later[:MAX_TESTED_RUNS]
    drift = None
    if not untested:
        drift = find_drift(_list_samples(baseline), _list_samples(since), max_error)
    if len(later) > MAX_TESTED_RUNS and drift is None and not untested:
        untested = f"more than {MAX_TESTED_RUNS} runs since the baseline; pin newer runs as the baseline"
    return RunSeries(key, config, tuple(points), baseline, since, drift, untested)


def _list_samples(points: Sequence[SeriesPoint]) -> tuple[RunSample, ...]:
    return tuple(point.sample for point in points)


def _find_obstacle(points: Sequence[SeriesPoint], baseline: Sequence[SeriesPoint]) -> str:
    """Return why the drift cannot be tested; "" if it can."""
    if not baseline:
        return "no baseline"
    if not any(point.tally.answered for point in baseline):
        return "no answer in the baseline"
    if any(point.tally.min_error_probability is not None for point in points):
        return "sequential stopping: the number of trials depends on their outcomes"
    if any(point.tally.repeating_cells for point in points):
        return "repeated answers at temperature 0 are not independent"
    return ""
