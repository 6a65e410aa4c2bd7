"""Rows of the matrix that all metrics, targets, views and orders share."""

from dataclasses import replace
from uuid import uuid4

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.metrics.pools import SumRow, sum_cells
from toolbench.lab.models import Cell
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import build_matrix

pytestmark = pytest.mark.django_db


class CellReader:
    """Reads the sums of all cells and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> list[SumRow]:
        self.times += 1
        return sum_cells(Cell.objects.all())


def make_two_models() -> None:
    run = make_run()
    for name, passed in (("gamma", 9), ("delta", 5)):
        config = make_config(run, make_model(name))
        make_trials(make_cell(config), **{"pass": passed, "fail": 1})
        make_trials(make_cell(config, "chat_only", control=True), **{"pass": 2, "fail": passed})


@pytest.mark.parametrize(
    "query",
    [
        MatrixQuery(scope="real", metric="control"),
        MatrixQuery(scope="real", metric="p95"),
        MatrixQuery(scope="real", target=50),
        MatrixQuery(scope="real", view="bars"),
        MatrixQuery(scope="real", sort="-p95"),
    ],
)
def test_pool_rows_are_read_once_and_give_the_matrix_of_each_metric(query: MatrixQuery) -> None:
    make_two_models()
    read_sums, version = CellReader(), uuid4()
    build_matrix(MatrixQuery(scope="real"), version, read_sums)
    found = build_matrix(query, version, read_sums)
    assert read_sums.times == 1
    assert found == replace(build_matrix(query, None, read_sums), version=version)


def test_pool_rows_of_another_version_or_filter_are_read_again() -> None:
    make_two_models()
    read_sums, version = CellReader(), uuid4()
    assert len(build_matrix(MatrixQuery(scope="real"), version, read_sums).rows) == 2
    assert len(build_matrix(MatrixQuery(scope="real", q="gamma"), version, read_sums).rows) == 1
    build_matrix(MatrixQuery(scope="real"), uuid4(), read_sums)
    assert read_sums.times == 3
