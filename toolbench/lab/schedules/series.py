"""The runs of a schedule as series: one per configuration, with counts, times, cost and drift."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.drift import Drift, RunSample, find_drift
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times, merge_times
from toolbench.lab.models import Cell, Run, RunConfig, Schedule

DRIFT_ERROR = 0.05  # probability that any series of a schedule is ever marked although nothing changed
MAX_TESTED_RUNS = 500  # since the baseline; the test ends there, so that its error stays the stated one
MAX_RUNS_SHOWN = 60  # newest


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One run of one configuration.

    Attributes:
        tally: counts of the tool scenarios; of the controls where the run has nothing else.
        sample: what the drift test reads.
        policy_hash: of the configuration's settings; it differs where they were changed.
    """

    run: Run
    config_id: int
    tally: Tally
    times: Times
    sample: RunSample
    policy_hash: str

    @property
    def answered(self) -> Rate:
        """Success given an answer."""
        return self.tally.answered_success()


@dataclass(frozen=True, slots=True)
class RunSeries:
    """The runs of one configuration, oldest first.

    Attributes:
        key: stays the same from run to run.
        baseline: points of the pinned runs.
        since: points of the first MAX_TESTED_RUNS runs after the newest pinned one.
        drift: what the test found; None if it found nothing or was not made.
        untested: why the test was not made, or ended; "" otherwise.
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
        """The run at which the change began."""
        return self.since[self.drift.begins].run if self.drift else None


def load_series(schedule: Schedule) -> tuple[RunSeries, ...]:
    """Return the series of a schedule from its ended runs and its baseline, in the order of the newest run.

    Cancelled runs are left out: their trials are not those of the plan.
    """
    pinned = set(schedule.baseline_runs.filter(deleted_at=None).values_list("pk", flat=True))
    ended = schedule.runs.filter(deleted_at=None, state=Run.State.FINISHED)
    newest = ended.order_by("-pk")[:MAX_RUNS_SHOWN]
    tested = list(ended.filter(pk__gt=max(pinned)).order_by("pk")[: MAX_TESTED_RUNS + 1]) if pinned else []
    runs = {run.pk: run for run in (*newest, *tested, *Run.objects.filter(pk__in=pinned))}
    points = _load_points(runs)
    return tuple(
        _build_series(key, config, found, pinned, error=DRIFT_ERROR / len(points))
        for key, (config, found) in points.items()
    )


def build_series_key(config: RunConfig) -> str:
    """Return the key of a configuration, equal in all runs of a schedule."""
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
    """Return the configuration and the points by key, oldest run first; the configuration is that of the newest run."""
    cells = (
        Cell.objects.filter(run__in=runs).select_related("config").order_by("run_id", "config__position", "position")
    )
    by_config: dict[RunConfig, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_config[cell.config].append(cell)
    shown = sorted(runs)[-MAX_RUNS_SHOWN:]
    times = load_cell_times(cell for found in by_config.values() for cell in found if cell.run_id in shown)
    series: dict[str, tuple[RunConfig, list[SeriesPoint]]] = {}
    for config, found in by_config.items():
        counted = [cell for cell in found if not cell.control] or found
        earlier = series.get(key := build_series_key(config), (config, []))[1]
        point = _build_point(
            runs[config.run_id], config, counted, merge_times(times.get(cell.pk, Times()) for cell in counted)
        )
        series[key] = (config, [*earlier, point])
    return series


def _build_point(run: Run, config: RunConfig, cells: Sequence[Cell], times: Times) -> SeriesPoint:
    tally = tally_cells(cells)
    answered = tuple(
        sorted(
            (f"{cell.scenario} v{cell.scenario_version} {cell.instance_kind}", count_answers(cell)) for cell in cells
        )
    )
    return SeriesPoint(run, config.pk, tally, times, RunSample(tally.passed, answered), config.policy_hash)


def count_answers(cell: Cell) -> int:
    """Return the trials of a cell with an answer, as `Tally.answered` counts them."""
    return cell.passed + cell.failed - cell.deadline_failed


def _build_series(
    key: str, config: RunConfig, points: Sequence[SeriesPoint], pinned: Iterable[int], *, error: float
) -> RunSeries:
    pinned = set(pinned)
    baseline = tuple(point for point in points if point.run.pk in pinned)
    last = max((point.run.pk for point in baseline), default=None)
    since = tuple(point for point in points if last is not None and point.run.pk > last)
    untested = _find_obstacle(points, baseline)
    is_over, since = len(since) > MAX_TESTED_RUNS, since[:MAX_TESTED_RUNS]
    drift = None
    if not untested:
        samples = [tuple(point.sample for point in found) for found in (baseline, since)]
        drift = find_drift(samples[0], samples[1], error)
    if is_over and drift is None and not untested:
        untested = f"more than {MAX_TESTED_RUNS} runs since the baseline; pin a newer one"
    return RunSeries(key, config, tuple(points), baseline, since, drift, untested)


def _find_obstacle(points: Sequence[SeriesPoint], baseline: Sequence[SeriesPoint]) -> str:
    if not baseline:
        return "no baseline"
    if not any(point.tally.answered for point in baseline):
        return "no answer in the baseline"
    if any(point.tally.error is not None for point in points):
        return "sequential stopping: the number of trials depends on their outcomes"
    if any(point.tally.repeating for point in points):
        return "repeated answers at temperature 0 are not independent"
    return ""
