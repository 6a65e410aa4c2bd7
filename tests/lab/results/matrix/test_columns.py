"""The columns of the grid after its cells."""

from itertools import pairwise

import pytest

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import Times
from toolbench.lab.metrics.values import Figure, MetricInput
from toolbench.lab.results.matrix.columns import (
    DEFAULT_COLUMNS,
    RETRIES,
    ROW_COLUMNS,
    choose_columns,
    compute_column_value,
)


def test_row_columns_have_every_metric_with_its_export_label() -> None:
    assert METRICS.keys() | {RETRIES} == ROW_COLUMNS.keys()
    assert {column.title for column in ROW_COLUMNS.values()} >= {metric.label for metric in METRICS.values()}


@pytest.mark.parametrize("names", [(), ("nonsense",)])
def test_choose_columns_without_known_name_gives_the_defaults(names: tuple[str, ...]) -> None:
    assert tuple(column.name for column in choose_columns(names)) == DEFAULT_COLUMNS


def test_choose_columns_keeps_columns_of_a_group_together() -> None:
    groups = [column.group for column in choose_columns(ROW_COLUMNS)]
    assert len(dict.fromkeys(groups)) == 1 + sum(left != right for left, right in pairwise(groups))


def test_retries_column_without_counted_requests_is_unknown() -> None:
    column = ROW_COLUMNS[RETRIES]
    known = compute_column_value(column, MetricInput(Tally(passed=1, requests=3, retries=2), Tally()), Times())
    unknown = compute_column_value(column, MetricInput(Tally(passed=1), Tally()), Times())
    assert (known.figure, unknown.is_known) == (Figure(2, 2, "retries"), False)
