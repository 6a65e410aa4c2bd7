"""Trial filter: round trip through the URL, and unreadable values."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.results.trial_list.filter import MAX_LISTED, TrialFilter, filter_trials


def test_trial_filter_survives_a_round_trip_through_the_url() -> None:
    query = TrialFilter(run=3, outcome="fail", signature="A · happy_path · $.ops", sort="order")
    assert TrialFilter.from_query(QueryDict(query.query())) == query


def test_trial_filter_keeps_long_runs_and_cluster_in_the_url() -> None:
    query = TrialFilter(runs=",".join(str(100_000 + number) for number in range(50)), cluster="x" * 240)
    assert TrialFilter.from_query(QueryDict(query.query())) == query


@pytest.mark.parametrize(
    "built_filter",
    [
        TrialFilter(runs=",".join(str(100_000 + number) for number in range(150))),
        TrialFilter(without=",".join(f"a_case_with_a_rather_long_name_{number}@2" for number in range(40))),
        TrialFilter(seen="unknown_argument", path="$.x "),
        TrialFilter(cluster=" a · $.x ", signature="A · a · $.x "),
        TrialFilter(cells="3-7,9"),
    ],
)
def test_trial_filter_built_by_a_page_survives_the_url(built_filter: TrialFilter) -> None:
    assert TrialFilter.from_query(QueryDict(built_filter.query())) == built_filter


@pytest.mark.django_db
def test_filter_trials_by_cells_selects_only_their_trials() -> None:
    cells = [make_cell(make_config(make_run(simulated=number == 1))) for number in range(4)]
    for cell in cells:
        make_trials(cell, **{"pass": 2})
    chosen = [cells[0].pk, cells[1].pk, cells[3].pk]
    found = filter_trials(TrialFilter(cells=f"{chosen[0]}-{chosen[1]},{chosen[2]}"))
    assert sorted(found.values_list("cell", flat=True)) == sorted(chosen * 2)


@pytest.mark.django_db
def test_filter_trials_by_group_selects_controls_only_as_their_group() -> None:
    config = make_config(make_run())
    for outcome, fields in (("pass", {}), ("fail", {"control": True})):
        make_trials(make_cell(config, f"case-{outcome}", scenario_group="own", **fields), **{outcome: 1})
    found = [filter_trials(TrialFilter(group=group)).get().outcome for group in ("own", "control")]
    assert found == ["pass", "fail"]


@pytest.mark.django_db
def test_filter_trials_like_an_unknown_configuration_finds_none() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 1})
    assert [filter_trials(TrialFilter(alike=config_id)).count() for config_id in (0, 999_999)] == [0, 0]


@pytest.mark.parametrize(
    "query",
    [
        *("run=x", "run=9999999999999999999999", "outcome=best", "sort=random", "run=%00"),
        *("cells=1-", "cells=1-2-3", "cells=-1", "cells=a"),
        *(f"{name}={'1,' * MAX_LISTED}1" for name in ("runs", "cells")),
        f"without={'a@1,' * MAX_LISTED}a@1",
    ],
)
def test_trial_filter_names_and_ignores_unreadable_values(query: str) -> None:
    trial_filter = TrialFilter.from_query(QueryDict(query))
    assert trial_filter.ignored == (() if query == "run=%00" else (query.split("=")[0],))  # NUL alone is no value
    assert trial_filter.query() == ""
