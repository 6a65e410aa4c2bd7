"""Links to the previous and the next trial of a filter."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.previous_next import get_neighbours
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def test_get_neighbours_visits_every_filtered_trial_both_ways() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "fail": 2, "infra": 1})
    query = TrialFilter(run=cell.run_id)
    expected = [row.id for row in get_trials(query).rows]
    visited_ids = [expected[0]]
    while (next_id := get_neighbours(Trial.objects.get(pk=visited_ids[-1]), query).next) is not None:
        assert get_neighbours(Trial.objects.get(pk=next_id), query).previous == visited_ids[-1]
        visited_ids.append(next_id)
    assert visited_ids == expected


def test_get_neighbours_next_failed_skips_passed_trials() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 2, "fail": 1})
    query = TrialFilter(run=cell.run_id, sort="order")
    assert get_neighbours(trials[0], query).next_failed == trials[2].pk
