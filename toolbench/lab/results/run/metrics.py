"""Metrics of one run by configuration and group of scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_

from toolbench.lab.metrics.definitions import GROUPS
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times
from toolbench.lab.metrics.values import Metric, MetricInput, MetricValue, compute_metric
from toolbench.lab.models import Cell, Run, RunConfig

MAX_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class MetricRow:
    """Metric with one value for each column."""

    metric: Metric
    values: tuple[MetricValue, ...]


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """Configuration in one group of scenarios.

    Attributes:
        settings: settings of the configuration that not every column has.
        group: name of the group; empty if the run has only one group.
        metric_input: counts and times that its metrics are computed from.
    """

    config: RunConfig
    settings: tuple[str, ...]
    group: str
    metric_input: MetricInput


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of a run.

    Attributes:
        shared_settings: settings that all columns have.
        hidden_column_count: number of columns beyond MAX_COLUMNS, which are not shown.
        groups: (title, rows) of each group of metrics. Rows in which no column has a value are left out.
    """

    run: Run
    columns: tuple[MetricColumn, ...]
    shared_settings: tuple[str, ...]
    hidden_column_count: int
    groups: tuple[tuple[str, tuple[MetricRow, ...]], ...]


def get_run_metrics(run_id: int) -> RunMetrics:
    """Return the metrics of a run, with four queries.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    run = Run.objects.defer("request", "skipped").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    all_groups = group_cells_by_config(configs, run.cells.all())
    shown_groups = all_groups[:MAX_COLUMNS]
    times = load_cell_times(cell for _, _, cells in shown_groups for cell in cells)
    settings = [_list_settings(config) for config, _, _ in shown_groups]
    differs = [len(set(values)) > 1 for values in zip(*settings, strict=True)]
    columns = tuple(
        MetricColumn(config, tuple(filter(None, compress(values, differs))), group, build_metric_input(cells, times))
        for values, (config, group, cells) in zip(settings, shown_groups, strict=True)
    )
    inputs = [column.metric_input for column in columns]
    groups = tuple((title, tuple(_build_rows(metrics, inputs))) for title, metrics in GROUPS.items())
    shared = tuple(filter(None, compress(settings[0], map(not_, differs)))) if settings else ()
    return RunMetrics(run, columns, shared, len(all_groups) - len(columns), groups)


def _list_settings(config: RunConfig) -> tuple[str, ...]:
    """Return the settings of a configuration in a fixed order; "" for no examples and for no streaming."""
    streaming = "streamed" if config.stream else ""
    return (config.provider_name, config.profile, config.strategy, config.method, config.examples, streaming)


def build_metric_input(cells: Sequence[Cell], times: Mapping[int, Times]) -> MetricInput:
    """Build the input of metrics from the cells of one configuration.

    Args:
        cells: cells of the configuration, controls included.
        times: times by primary key of the cell.
    """
    tools = tuple(cell for cell in cells if not cell.control)
    control = tally_cells(cell for cell in cells if cell.control)
    parts = tuple(tally_cells([cell]) for cell in tools)
    return MetricInput(tally_cells(tools), control, parts, tuple(times[cell.pk] for cell in tools))


def _build_rows(metrics: Sequence[Metric], inputs: Sequence[MetricInput]) -> list[MetricRow]:
    rows = [
        MetricRow(metric, tuple(_compute_value(metric, metric_input) for metric_input in inputs)) for metric in metrics
    ]
    return [row for row in rows if any(value.is_known for value in row.values)]


def _compute_value(metric: Metric, metric_input: MetricInput) -> MetricValue:
    """Return the value of a metric; an unknown value for a rate without trials."""
    value = compute_metric(metric, metric_input)
    return value if value.rate is None or value.rate.n else MetricValue(None, None)
