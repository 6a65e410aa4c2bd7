"""Columns and density in the URL."""

import pytest
from django.http import QueryDict

from toolbench.lab.results.table_layout import MAX_COLUMNS, USUAL_LAYOUT, TableLayout


@pytest.mark.parametrize(
    ("query", "layout"),
    [
        ("", USUAL_LAYOUT),
        ("grid_column=p50&grid_column=p99", TableLayout(grid=("p50", "p99"))),
        ("grid_column=p50,p99,p50,", TableLayout(grid=("p50", "p99"))),
        ("trial_column=path&density=compact", TableLayout(trials=("path",), density="compact")),
        ("density=huge", USUAL_LAYOUT),
    ],
)
def test_table_layout_is_parsed_from_the_query(query: str, layout: TableLayout) -> None:
    assert TableLayout.from_query(QueryDict(query)) == layout


def test_table_layout_survives_a_round_trip_through_its_pairs() -> None:
    layout = TableLayout(("p50", "p99"), ("path", "got"), "comfortable")
    query = QueryDict(mutable=True)
    for name, value in layout.pairs:
        query.appendlist(name, value)
    assert TableLayout.from_query(query) == layout


def test_table_layout_bounds_number_and_length_of_columns() -> None:
    names = ",".join(f"c{number}" for number in range(1_000))
    found = TableLayout.from_query(QueryDict(f"grid_column={names}&trial_column={'x' * 5_000}"))
    assert len(found.grid) == MAX_COLUMNS
    assert found.trials == ()
