"""Columns of the grid after its cells: every metric, and answers of 429 and 5xx with retries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbench.lab.metrics.definitions import GROUPS, METRICS
from toolbench.lab.metrics.times import Times
from toolbench.lab.metrics.values import UNKNOWN, Figure, MetricInput, MetricValue, compute_metric

RETRIES = "retries"
USUAL_COLUMNS = ("p50", "p95", RETRIES, "tokens", "cost")
_TIME, _SPENT = "Time, s", "Requests and cost"
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
    """A column of figures over all scenarios of a row.

    Attributes:
        name: of its metric, or RETRIES.
        label: short head; its title is the label of the metric, which exports have too.
        group: the head above it.
        missing: what stands where there is no value.
    """

    name: str
    label: str
    title: str
    group: str
    missing: str = UNKNOWN


def _list_columns() -> Iterable[RowColumn]:
    for group, metrics in GROUPS.items():
        for metric in metrics:
            head = _TIME if metric.name in _TIMES else _SPENT if group == "Time, tokens, cost" else group
            label = _SHORT_LABELS.get(metric.name, metric.label)
            yield RowColumn(metric.name, label, metric.label, head, "–" if metric.quantile else metric.missing)
    yield RowColumn(RETRIES, "429 + 5xx · retries", "Answers of 429 and 5xx, and retries", _SPENT)


_FOUND = sorted(_list_columns(), key=lambda column: (column.group == _SPENT, column.name != RETRIES))
ROW_COLUMNS: Mapping[str, RowColumn] = {column.name: column for column in _FOUND}


def choose_columns(names: Iterable[str]) -> tuple[RowColumn, ...]:
    """Return the named columns in their own order; the usual ones if none is named or known."""
    chosen = set(names) & ROW_COLUMNS.keys() or set(USUAL_COLUMNS)
    return tuple(column for column in ROW_COLUMNS.values() if column.name in chosen)


def compute_figure(column: RowColumn, counted: MetricInput, times: Times) -> MetricValue:
    """Return the value of a column in one row.

    Args:
        column: the column; for RETRIES, the value is the number of retries where it is known.
        counted: the counts of the row.
        times: the times of all its tool scenarios together.
    """
    if column.name == RETRIES:
        tally = counted.tools
        return MetricValue(None, Figure(tally.retries, tally.retries, "retries") if tally.retries_known else None)
    metric = METRICS[column.name]
    if metric.quantile:
        return MetricValue(None, None, metric.quantile(times))
    return compute_metric(metric, counted)
