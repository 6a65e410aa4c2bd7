"""Every metric of one run, by configuration."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.statistics import P95_LEAST
from toolbench.lab.metrics import GROUPS, Figure, Metric, Pool, pooled_with, rate_for
from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.lab.rates import Rate
from toolbench.lab.tallies import Tally, tally

MOST_CONFIGS = 12


@dataclass(frozen=True, slots=True)
class MetricValue:
    """At most one of the two; neither where nothing was counted."""

    rate: Rate | None
    figure: Figure | None


@dataclass(frozen=True, slots=True)
class MetricLine:
    metric: Metric
    values: tuple[MetricValue, ...]


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """`groups` of lines, each line with one value per configuration; lines without any value are left out."""

    run: Run
    configs: tuple[RunConfig, ...]
    left_out: int
    groups: tuple[tuple[str, tuple[MetricLine, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Counted:
    tools: Tally
    control: Tally
    parts: tuple[Tally, ...]
    cells: tuple[Cell, ...]


def get_run_metrics(run_id: int) -> RunMetrics:
    """Three queries. Raises Run.DoesNotExist for an unknown run."""
    run = Run.objects.defer("request", "skipped").get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    by_config: dict[int, list[Cell]] = defaultdict(list)
    for cell in run.cells.all():
        by_config[cell.config_id].append(cell)
    counted = [_counted(by_config[config.pk]) for config in configs[:MOST_CONFIGS]]
    groups = ((title, tuple(_lines(metrics, counted))) for title, metrics in GROUPS.items())
    return RunMetrics(run, configs[:MOST_CONFIGS], max(0, len(configs) - MOST_CONFIGS), tuple(groups))


def _counted(cells: Sequence[Cell]) -> _Counted:
    tools = tuple(cell for cell in cells if not cell.control)
    control = tally(cell for cell in cells if cell.control)
    return _Counted(tally(tools), control, tuple(tally([cell]) for cell in tools), tools)


def _lines(metrics: Sequence[Metric], counted: Sequence[_Counted]) -> list[MetricLine]:
    lines = [MetricLine(metric, tuple(_value(metric, one) for one in counted)) for metric in metrics]
    return [line for line in lines if any(value.rate or value.figure for value in line.values)]


def _value(metric: Metric, counted: _Counted) -> MetricValue:
    rate = rate_for(metric, counted.tools, counted.control)
    if rate is not None:
        return MetricValue(rate if rate.n else None, None)
    times = {name: _span(counted.cells, name) for name in ("p50_ms", "p95_ms", "first_token_p50_ms")}
    whole = pooled_with(metric, counted.tools, counted.control)
    pool = Pool(whole, counted.parts, times["p50_ms"], times["p95_ms"], times["first_token_p50_ms"])
    return MetricValue(None, metric.figure(pool) if metric.figure else None)


def _span(cells: Sequence[Cell], column: str) -> Figure | None:
    """A range over the cells; a p95 only of those with enough answers."""
    enough = [cell for cell in cells if column != "p95_ms" or tally([cell]).answered >= P95_LEAST]
    known = [value for cell in enough if (value := getattr(cell, column)) is not None]
    return Figure(min(known), max(known), "ms") if known else None
