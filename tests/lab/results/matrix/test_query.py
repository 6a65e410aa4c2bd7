"""Query of the matrix: round trip through the URL, and unreadable values."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from toolbench.lab.results.matrix.query import MatrixQuery


def test_matrix_query_survives_a_round_trip_through_the_url() -> None:
    query = MatrixQuery(
        scope="runs", runs=(3, 14), metric="delivered", target=95, q="qwen", group="weather", cell="7", view="bars"
    )
    query = replace(query, prompt="1 · text_json 1")
    assert MatrixQuery.from_query(QueryDict(query.query())) == query
    grid = replace(query, cell="", view="profile", sort="-p95")
    assert MatrixQuery.from_query(QueryDict(grid.query())) == grid


def test_matrix_query_with_an_open_row_uses_the_bar_view() -> None:
    assert MatrixQuery.from_query(QueryDict("cell=7")).view == "bars"


def test_matrix_query_omits_defaults() -> None:
    assert MatrixQuery(scope="real").query(scope="") == ""


def test_matrix_query_with_runs_sets_the_scope_to_runs() -> None:
    assert MatrixQuery.from_query(QueryDict("run=3&run=14,15")).runs == (3, 14, 15)


@pytest.mark.parametrize(
    "query",
    [
        "scope=all",
        "scope=runs",
        "metric=best",
        "target=91",
        "view=pie",
        "run=x",
        "run=" + "9" * 5000,
        "run=%00",
        "target=%F0%9F%98%80",
    ],
)
def test_matrix_query_names_and_ignores_unreadable_values(query: str) -> None:
    matrix_query = MatrixQuery.from_query(QueryDict(query))
    assert matrix_query.ignored == (query.split("=")[0],)
    assert matrix_query.query() == ""


def test_matrix_query_named_runs_precede_the_scope() -> None:
    matrix_query = MatrixQuery.from_query(QueryDict("scope=real&run=3"))
    assert (matrix_query.scope, matrix_query.runs, matrix_query.ignored) == ("runs", (3,), ())


def test_matrix_query_with_another_scope_drops_the_runs() -> None:
    query = MatrixQuery(scope="runs", runs=(3,))
    assert query.query(scope="demo") == "scope=demo"
