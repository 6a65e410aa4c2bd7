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


def test_every_metric_is_a_column_under_the_label_of_exports() -> None:
    assert METRICS.keys() | {RETRIES} == ROW_COLUMNS.keys()
    assert {column.title for column in ROW_COLUMNS.values()} >= {metric.label for metric in METRICS.values()}


@pytest.mark.parametrize("names", [(), ("nonsense",)])
def test_usual_columns_are_shown_without_a_known_name(names: tuple[str, ...]) -> None:
    assert tuple(column.name for column in choose_columns(names)) == DEFAULT_COLUMNS


def test_columns_of_a_group_stand_side_by_side() -> None:
    groups = [column.group for column in choose_columns(ROW_COLUMNS)]
    assert len(dict.fromkeys(groups)) == 1 + sum(left != right for left, right in pairwise(groups))


def test_retries_without_counted_requests_are_unknown() -> None:
    column = ROW_COLUMNS[RETRIES]
    known = compute_column_value(column, MetricInput(Tally(passed=1, requests=3, retries=2), Tally()), Times())
    unknown = compute_column_value(column, MetricInput(Tally(passed=1), Tally()), Times())
    assert (known.figure, unknown.is_known) == (Figure(2, 2, "retries"), False)
