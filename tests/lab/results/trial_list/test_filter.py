"""Trial filter: round trip through the URL, and unreadable values."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.results.trial_list.filter import MAX_LISTED, TrialFilter, filter_trials, join_ids


def test_a_filter_survives_the_way_through_the_address() -> None:
    query = TrialFilter(run=3, outcome="fail", signature="A · happy_path · $.ops", sort="order")
    assert TrialFilter.from_query(QueryDict(query.query())) == query


def test_a_long_list_of_runs_and_a_long_signature_survive_it_whole() -> None:
    query = TrialFilter(runs=",".join(str(100_000 + number) for number in range(50)), cluster="x" * 240)
    assert TrialFilter.from_query(QueryDict(query.query())) == query


@pytest.mark.parametrize(
    "asked",
    [
        TrialFilter(runs=",".join(str(100_000 + number) for number in range(150))),
        TrialFilter(without=",".join(f"a_case_with_a_rather_long_name_{number}@2" for number in range(40))),
        TrialFilter(seen="unknown_argument", path="$.x "),
        TrialFilter(cluster=" a · $.x ", signature="A · a · $.x "),
        TrialFilter(cells="3-7,9"),
    ],
)
def test_trial_filter_of_a_page_is_read_back_whole(asked: TrialFilter) -> None:
    assert TrialFilter.from_query(QueryDict(asked.query())) == asked


def test_join_ids_neighbours_become_ranges() -> None:
    assert join_ids([5, 3, 4, 9, 9]) == "3-5,9"
    assert join_ids([]) == ""


@pytest.mark.django_db
def test_matching_cells_selects_only_theirs() -> None:
    cells = [make_cell(make_config(make_run(simulated=number == 1))) for number in range(3)]
    for cell in cells:
        make_trials(cell, **{"pass": 2})
    chosen = [cells[0].pk, cells[1].pk]
    found = filter_trials(TrialFilter(cells=join_ids(chosen)))
    assert sorted(found.values_list("cell", flat=True)) == sorted(chosen * 2)


@pytest.mark.parametrize(
    "query",
    [
        *("run=x", "run=9999999999999999999999", "outcome=best", "sort=random", "run=%00"),
        *("cells=1-", "cells=1-2-3", "cells=-1", "cells=a"),
        *(f"{name}={'1,' * MAX_LISTED}1" for name in ("runs", "cells")),
        f"without={'a@1,' * MAX_LISTED}a@1",
    ],
)
def test_an_unreadable_value_is_named_and_left_out(query: str) -> None:
    asked = TrialFilter.from_query(QueryDict(query))
    assert asked.ignored == (query.split("=")[0],) or query == "run=%00"
    assert asked.query() == ""
