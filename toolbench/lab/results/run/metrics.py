"""Metrics of one run by configuration and group of scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.metrics.definitions import GROUPS
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.times import Times, load_cell_times
from toolbench.lab.metrics.values import Metric, MetricInput, MetricValue, compute_metric
from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.lab.results.matrix.rows import build_config_sort_key

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
        settings: values by label of the non-empty settings in which the columns of the run differ.
        group: name of the group; empty if the run has only one group.
        metric_input: counts and times that its metrics are computed from.
    """

    config: RunConfig
    settings: Mapping[str, str]
    group: str
    metric_input: MetricInput


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of a run.

    Attributes:
        columns: at most MAX_COLUMNS, in the order of the run's matrix.
        shared_settings: values by label of the non-empty settings that all columns of the run have in common, hidden
            columns included; empty for one column, which names all its settings itself.
        hidden_column_count: number of columns beyond MAX_COLUMNS, which are not shown.
        groups: (title, rows) of each group of metrics. Rows in which no column has a value are left out.
    """

    run: Run
    columns: tuple[MetricColumn, ...]
    shared_settings: Mapping[str, str]
    hidden_column_count: int
    groups: tuple[tuple[str, tuple[MetricRow, ...]], ...]


def get_run_metrics(run_id: int) -> RunMetrics:
    """Return the metrics of a run, with four queries.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    run = Run.objects.defer("request", "skipped").get(pk=run_id, deleted_at=None)
    configs = sorted(run.configs.defer("layers", "options", "true_rates"), key=build_config_sort_key)
    all_groups = group_cells_by_config(configs, run.cells.all())
    shown_groups = all_groups[:MAX_COLUMNS]
    times = load_cell_times(cell for _, _, cells in shown_groups for cell in cells)
    shared_settings = _find_shared_settings([config for config, _, _ in all_groups])
    columns = tuple(
        MetricColumn(config, _list_own_settings(config, shared_settings), group, build_metric_input(cells, times))
        for config, group, cells in shown_groups
    )
    inputs = [column.metric_input for column in columns]
    groups = tuple((title, tuple(_build_rows(metrics, inputs))) for title, metrics in GROUPS.items())
    return RunMetrics(run, columns, shared_settings, len(all_groups) - len(columns), groups)


def _find_shared_settings(configs: Sequence[RunConfig]) -> Mapping[str, str]:
    """Return values by label of the non-empty settings that all columns share; {} for fewer than two columns.

    Args:
        configs: the configuration of each column.
    """
    if len(configs) < 2:
        return {}
    first, *others = (_list_settings(config) for config in configs)
    shared = {}
    for label, value in first.items():
        if value and all(other[label] == value for other in others):
            shared[label] = value
    return shared


def _list_own_settings(config: RunConfig, shared_settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return values by label of the settings that are neither shared nor empty."""
    settings = _list_settings(config)
    return {label: value for label, value in settings.items() if value and label not in shared_settings}


def _list_settings(config: RunConfig) -> Mapping[str, str]:
    """Return the settings that the page names, by label; "" for no examples and for no streaming."""
    return {
        "provider": config.provider_name,
        "profile": config.profile,
        "strategy": config.strategy,
        "method": config.method,
        "examples": config.examples,
        "answers": "streamed" if config.stream else "",
    }


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
