"""Every metric of one run, by configuration and group of scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.metrics.definitions import GROUPS
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times
from toolbench.lab.metrics.values import Metric, MetricInput, MetricValue, compute_metric
from toolbench.lab.models import Cell, Run, RunConfig

MAX_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric with a value per column."""

    metric: Metric
    values: tuple[MetricValue, ...]


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """One configuration on one group of scenarios.

    Attributes:
        group: empty if the run has only one group.
    """

    config: RunConfig
    group: str
    counted: MetricInput


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of a run.

    Attributes:
        left_out: number of columns above MAX_COLUMNS that are not shown.
        groups: titles with their rows. Rows without any value are left out.
    """

    run: Run
    columns: tuple[MetricColumn, ...]
    left_out: int
    groups: tuple[tuple[str, tuple[MetricRow, ...]], ...]


def get_run_metrics(run_id: int) -> RunMetrics:
    """Return the metrics of a run with four queries.

    Raises:
        Run.DoesNotExist: there is no such run.
    """
    run = Run.objects.defer("request", "skipped").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    found = group_cells_by_config(configs, run.cells.all())
    chosen = found[:MAX_COLUMNS]
    times = load_cell_times(cell for _, _, cells in chosen for cell in cells)
    shown = tuple(MetricColumn(config, group, count_cells(cells, times)) for config, group, cells in chosen)
    groups = (
        (title, tuple(_build_rows(metrics, [metric_row.counted for metric_row in shown])))
        for title, metrics in GROUPS.items()
    )
    return RunMetrics(run, shown, len(found) - len(shown), tuple(groups))


def count_cells(cells: Sequence[Cell], times: Mapping[int, Times]) -> MetricInput:
    """Return the counts of one configuration's cells.

    Args:
        cells: cells of the configuration, controls included.
        times: times by primary key of the cell.
    """
    tools = tuple(cell for cell in cells if not cell.control)
    control = tally_cells(cell for cell in cells if cell.control)
    parts = tuple(tally_cells([cell]) for cell in tools)
    return MetricInput(tally_cells(tools), control, parts, tuple(times[cell.pk] for cell in tools))


def _build_rows(metrics: Sequence[Metric], of: Sequence[MetricInput]) -> list[MetricRow]:
    lines = [MetricRow(metric, tuple(_compute_value(metric, counted) for counted in of)) for metric in metrics]
    return [line for line in lines if any(value.is_known for value in line.values)]


def _compute_value(metric: Metric, of: MetricInput) -> MetricValue:
    """Return the value of a metric; empty if nothing was counted."""
    value = compute_metric(metric, of)
    return value if value.rate is None or value.rate.n else MetricValue(None, None)
