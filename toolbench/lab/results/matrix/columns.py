"""Columns of the grid after its cells: one for each metric, and one for retries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolbench.lab.metrics.definitions import GROUPS, METRICS
from toolbench.lab.metrics.times import Times
from toolbench.lab.metrics.values import UNKNOWN, Figure, MetricInput, MetricValue, compute_metric

RETRIES = "retries"  # column with the answers of status 429 and 5xx, and the retries
DEFAULT_COLUMNS = ("p50", "p95", RETRIES, "tokens", "cost")
_TIME_GROUP, _COST_GROUP = "Time, s", "Requests and cost"
_SHORT_LABELS = {
    "p50": "p50",
    "p95": "p95",
    "p99": "p99",
    "first_token": "First token",
    "tokens": "Tokens a trial",
    "cost": "Cost a success",
}
_TIME_METRICS = ("p50", "p95", "p99", "first_token")


@dataclass(frozen=True, slots=True)
class RowColumn:
    """Column of the grid after its cells, with one metric or the retries of each row.

    Attributes:
        name: name of its metric, or RETRIES.
        label: head of the column.
        title: tooltip of the head, such as the whole label of the metric.
        group: head above neighbouring columns of one group.
        missing: text that the page shows for an unknown value; columns that differ only in it are equal.
    """

    name: str
    label: str
    title: str
    group: str
    missing: str = field(default=UNKNOWN, compare=False)


def _iter_columns() -> Iterable[RowColumn]:
    for group, metrics in GROUPS.items():
        for metric in metrics:
            metric_group = _COST_GROUP if group == "Time, tokens, cost" else group
            head = _TIME_GROUP if metric.name in _TIME_METRICS else metric_group
            label = _SHORT_LABELS.get(metric.name, metric.label)
            yield RowColumn(metric.name, label, metric.label, head, "–" if metric.quantile else metric.missing)
    yield RowColumn(RETRIES, "429 + 5xx · retries", "Answers with 429 or 5xx, and retries", _COST_GROUP)


# The group of costs comes last, and RETRIES is its first column.
_COLUMNS = sorted(_iter_columns(), key=lambda column: (column.group == _COST_GROUP, column.name != RETRIES))
ROW_COLUMNS: Mapping[str, RowColumn] = {column.name: column for column in _COLUMNS}


def choose_columns(names: Iterable[str]) -> tuple[RowColumn, ...]:
    """Return the named columns in the order of the grid; the default columns if no name is known."""
    chosen = set(names) & ROW_COLUMNS.keys() or set(DEFAULT_COLUMNS)
    return tuple(column for column in ROW_COLUMNS.values() if column.name in chosen)


def list_hidden_columns(shown: Iterable[RowColumn], sort: str) -> tuple[RowColumn, ...]:
    """Return the column by which rows are sorted if it is not shown; empty otherwise.

    Args:
        shown: columns that the grid shows.
        sort: name of a column, with or without "-" before it; any other text names no column.
    """
    column = ROW_COLUMNS.get(sort.removeprefix("-"))
    return (column,) if column and column not in shown else ()


def compute_column_value(column: RowColumn, metric_input: MetricInput, times: Times) -> MetricValue:
    """Compute the value of a column in one row.

    Args:
        column: the column. The value of RETRIES is the number of retries; it is unknown if the counts are incomplete.
        metric_input: counts of the row.
        times: times of the scenarios that the row's overall cell counts, for quantiles.
    """
    if column.name == RETRIES:
        tally = metric_input.tools
        return MetricValue(None, Figure(tally.retries, tally.retries, "retries") if tally.retries_known else None)
    metric = METRICS[column.name]
    if metric.quantile:
        return MetricValue(None, None, metric.quantile(times))
    return compute_metric(metric, metric_input)
