"""Lists of trials, page by page."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def test_trial_list_sorts_failures_then_infra_errors_first() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "infra": 1, "fail": 1})
    assert [row.mark for row in get_trials(TrialFilter(run=cell.run_id)).rows] == ["fail", "infra", "pass", "pass"]


def test_trial_list_excludes_simulated_runs_unless_demo() -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 1})
    assert get_trials(TrialFilter()).total == 0
    assert get_trials(TrialFilter(demo="1")).total == 1


def test_trial_list_excludes_deleted_runs() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1})
    type(cell.run).objects.update(deleted_at="2026-01-01T00:00Z")
    assert get_trials(TrialFilter(run=cell.run_id)).total == 0


def test_trial_list_shows_imported_trials_with_unknown_verdicts() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "fail", verdict={"first_bad": "nowhere"})
    assert [row.path for row in get_trials(TrialFilter(run=cell.run_id)).rows] == [""]


def test_trial_list_states_lag_of_texts_only_for_searches_of_texts() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    Trial.objects.filter(pk=trial.pk).update(queued_at=trial.started_at, finished_at=trial.started_at)
    lags = {search: get_trials(TrialFilter(search=search)).text_lag for search in ("", "ms>5", "lost", "tool:get")}
    assert [search for search, lag in lags.items() if lag > 0] == ["lost", "tool:get"]


def test_trial_list_page_takes_two_queries(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 30, "fail": 30})
    with django_assert_num_queries(2):
        assert len(get_trials(TrialFilter(run=cell.run_id)).rows) == 50


def test_trial_list_call_names_take_no_more_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 30, "fail": 30})
    with django_assert_num_queries(2):
        rows = get_trials(TrialFilter(run=cell.run_id), needs_call_names=True).rows
    assert {row.calls.expected for row in rows if row.calls} == {"state_patch"}


def test_trial_list_counts_outcomes_with_their_share() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 3, "fail": 1})
    counts = [(outcome.value, outcome.count, outcome.bar_percent) for outcome in get_trials(TrialFilter()).outcomes]
    assert counts == [("pass", 3, 75.0), ("fail", 1, 25.0)]
