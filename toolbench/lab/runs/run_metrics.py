"""Every metric of one run, by configuration and group of scenarios."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.statistics import P95_LEAST
from toolbench.lab.counts.groups import in_configs_and_groups
from toolbench.lab.counts.metrics import GROUPS, Counted, Figure, Metric, MetricValue, value_of
from toolbench.lab.counts.tallies import tally
from toolbench.lab.models import Cell, Run, RunConfig

MOST_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class MetricLine:
    metric: Metric
    values: tuple[MetricValue, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One configuration on one group of scenarios; `group` is "" where the run has one only."""

    config: RunConfig
    group: str
    counted: Counted


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """`groups` of lines, each line with one value per column; lines without any value are left out."""

    run: Run
    columns: tuple[Column, ...]
    left_out: int
    groups: tuple[tuple[str, tuple[MetricLine, ...]], ...]


def get_run_metrics(run_id: int) -> RunMetrics:
    """Three queries. Raises Run.DoesNotExist for an unknown run."""
    run = Run.objects.defer("request", "skipped").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    found = in_configs_and_groups(configs, run.cells.all())
    shown = tuple(Column(config, group, counted(cells)) for config, group, cells in found[:MOST_COLUMNS])
    groups = ((title, tuple(_lines(metrics, [one.counted for one in shown]))) for title, metrics in GROUPS.items())
    return RunMetrics(run, shown, len(found) - len(shown), tuple(groups))


def counted(cells: Sequence[Cell]) -> Counted:
    """Of one configuration's cells."""
    tools = tuple(cell for cell in cells if not cell.control)
    times = (_span(tools, name) for name in ("p50_ms", "p95_ms", "first_token_p50_ms"))
    control = tally(cell for cell in cells if cell.control)
    return Counted(tally(tools), control, tuple(tally([cell]) for cell in tools), *times)


def _lines(metrics: Sequence[Metric], of: Sequence[Counted]) -> list[MetricLine]:
    lines = [MetricLine(metric, tuple(_value(metric, one) for one in of)) for metric in metrics]
    return [line for line in lines if any(value.rate or value.figure for value in line.values)]


def _value(metric: Metric, of: Counted) -> MetricValue:
    """Neither rate nor figure where nothing was counted."""
    value = value_of(metric, of)
    return value if value.rate is None or value.rate.n else MetricValue(None, None)


def _span(cells: Sequence[Cell], column: str) -> Figure | None:
    """A range over the cells; a p95 only of those with enough answers."""
    enough = [cell for cell in cells if column != "p95_ms" or tally([cell]).answered >= P95_LEAST]
    known = [value for cell in enough if (value := getattr(cell, column)) is not None]
    return Figure(min(known), max(known), "ms") if known else None
