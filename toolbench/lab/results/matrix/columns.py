"""Columns of the grid after its cells: one for each metric, and one for answers with 429 or 5xx and retries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbench.lab.metrics.definitions import GROUPS, METRICS
from toolbench.lab.metrics.times import Times
from toolbench.lab.metrics.values import UNKNOWN, Figure, MetricInput, MetricValue, compute_metric

RETRIES = "retries"
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
_TIMES = ("p50", "p95", "p99", "first_token")


@dataclass(frozen=True, slots=True)
class RowColumn:
    """Column of figures over all scenarios of a row.

    Attributes:
        name: name of its metric, or RETRIES.
        label: its short head.
        title: label of the metric, as in exports.
        group: the head above it.
        missing: text in the place of an unknown value.
    """

    name: str
    label: str
    title: str
    group: str
    missing: str = UNKNOWN


def _iter_columns() -> Iterable[RowColumn]:
    for group, metrics in GROUPS.items():
        for metric in metrics:
            cost_or_own_group = _COST_GROUP if group == "Time, tokens, cost" else group
            head = _TIME_GROUP if metric.name in _TIMES else cost_or_own_group
            label = _SHORT_LABELS.get(metric.name, metric.label)
            yield RowColumn(metric.name, label, metric.label, head, "–" if metric.quantile else metric.missing)
    yield RowColumn(RETRIES, "429 + 5xx · retries", "Answers with 429 or 5xx, and retries", _COST_GROUP)


_COLUMNS = sorted(_iter_columns(), key=lambda column: (column.group == _COST_GROUP, column.name != RETRIES))
ROW_COLUMNS: Mapping[str, RowColumn] = {column.name: column for column in _COLUMNS}


def choose_columns(names: Iterable[str]) -> tuple[RowColumn, ...]:
    """Return the named columns in the order of the grid; the default columns if no name is known."""
    chosen = set(names) & ROW_COLUMNS.keys() or set(DEFAULT_COLUMNS)
    return tuple(column for column in ROW_COLUMNS.values() if column.name in chosen)


def compute_figure(column: RowColumn, counted: MetricInput, times: Times) -> MetricValue:
    """Return the value of a column in one row.

    Args:
        column: the column; the value of RETRIES is the number of retries if it is known.
        counted: counts of the row.
        times: times of all its tool scenarios together.
    """
    if column.name == RETRIES:
        tally = counted.tools
        return MetricValue(None, Figure(tally.retries, tally.retries, "retries") if tally.retries_known else None)
    metric = METRICS[column.name]
    if metric.quantile:
        return MetricValue(None, None, metric.quantile(times))
    return compute_metric(metric, counted)
