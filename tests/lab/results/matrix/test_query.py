"""Query of the matrix: round trip through the URL, and unreadable values."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from toolbench.lab.results.matrix.query import MatrixQuery


def test_the_address_holds_the_whole_state() -> None:
    query = MatrixQuery(
        scope="runs", runs=(3, 14), metric="delivered", target=95, q="qwen", group="weather", cell="7", view="bars"
    )
    query = replace(query, prompt="1 · text_json 1")
    assert MatrixQuery.from_query(QueryDict(query.query())) == query
    grid = replace(query, cell="", view="profile", sort="-p95")
    assert MatrixQuery.from_query(QueryDict(grid.query())) == grid


def test_an_open_row_is_shown_by_the_bars() -> None:
    assert MatrixQuery.from_query(QueryDict("cell=7")).view == "bars"


def test_defaults_are_left_out_of_the_address() -> None:
    assert MatrixQuery(scope="real").query(scope="") == ""


def test_runs_alone_mean_their_scope() -> None:
    assert MatrixQuery.from_query(QueryDict("run=3&run=14,15")).runs == (3, 14, 15)


@pytest.mark.parametrize(
    "query",
    [
        "scope=all",
        "metric=best",
        "target=91",
        "view=pie",
        "run=x",
        "run=" + "9" * 5000,
        "run=%00",
        "target=%F0%9F%98%80",
    ],
)
def test_an_unreadable_value_is_named_and_left_out(query: str) -> None:
    asked = MatrixQuery.from_query(QueryDict(query))
    assert asked.ignored == (query.split("=")[0],)
    assert asked.query() == ""


def test_another_scope_drops_the_runs() -> None:
    query = MatrixQuery(scope="runs", runs=(3,))
    assert query.query(scope="demo") == "scope=demo"
