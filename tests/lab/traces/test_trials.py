"""Lists of trials: the address decides, and nothing in it can break the page."""

import pytest
from django.http import QueryDict
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.traces.trials import TrialFilter, get_neighbours, get_trials

pytestmark = pytest.mark.django_db


def test_a_filter_survives_the_way_through_the_address() -> None:
    asked = TrialFilter(run=3, outcome="fail", signature="A · happy_path · $.ops", sort="order")
    assert TrialFilter.from_query(QueryDict(asked.query())) == asked


def test_a_long_list_of_runs_and_a_long_signature_survive_it_whole() -> None:
    asked = TrialFilter(runs=",".join(str(100_000 + number) for number in range(50)), cluster="x" * 240)
    assert TrialFilter.from_query(QueryDict(asked.query())) == asked


@pytest.mark.parametrize(
    "query", ["run=x", "run=9999999999999999999999", "outcome=best", "sort=random", "run=%00", f"runs={'1,' * 600}1"]
)
def test_an_unreadable_value_is_named_and_left_out(query: str) -> None:
    asked = TrialFilter.from_query(QueryDict(query))
    assert asked.ignored == (query.split("=")[0],) or query == "run=%00"
    assert asked.query() == ""


def test_failures_come_first_then_infrastructure() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "infra": 1, "fail": 1})
    assert [row.mark for row in get_trials(TrialFilter(run=cell.run_id)).rows] == ["fail", "infra", "pass", "pass"]


def test_simulated_runs_stay_out_unless_asked_for() -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 1})
    assert get_trials(TrialFilter()).total == 0
    assert get_trials(TrialFilter(demo="1")).total == 1


def test_deleted_runs_are_gone_from_the_list() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1})
    type(cell.run).objects.update(deleted_at="2026-01-01T00:00Z")
    assert get_trials(TrialFilter(run=cell.run_id)).total == 0


def test_walking_next_visits_every_trial_of_the_filter_in_its_order_and_back() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "fail": 2, "infra": 1})
    asked = TrialFilter(run=cell.run_id)
    expected = [row.id for row in get_trials(asked).rows]
    seen = [expected[0]]
    while (following := get_neighbours(Trial.objects.get(pk=seen[-1]), asked).next) is not None:
        assert get_neighbours(Trial.objects.get(pk=following), asked).previous == seen[-1]
        seen.append(following)
    assert seen == expected


def test_next_failed_skips_what_passed() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 2, "fail": 1})
    asked = TrialFilter(run=cell.run_id, sort="order")
    assert get_neighbours(trials[0], asked).next_failed == trials[2].pk


def test_a_page_of_the_list_takes_a_fixed_number_of_queries(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 30, "fail": 30})
    with django_assert_num_queries(6):
        assert len(get_trials(TrialFilter(run=cell.run_id)).rows) == 50
