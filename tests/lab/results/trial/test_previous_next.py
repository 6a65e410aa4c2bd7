"""Links to the previous and the next trial of a filter."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.previous_next import get_neighbours
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def test_next_visits_every_filtered_trial_in_order_and_back() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "fail": 2, "infra": 1})
    query = TrialFilter(run=cell.run_id)
    expected = [row.id for row in get_trials(query).rows]
    seen = [expected[0]]
    while (following := get_neighbours(Trial.objects.get(pk=seen[-1]), query).next) is not None:
        assert get_neighbours(Trial.objects.get(pk=following), query).previous == seen[-1]
        seen.append(following)
    assert seen == expected


def test_next_failed_skips_what_passed() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 2, "fail": 1})
    query = TrialFilter(run=cell.run_id, sort="order")
    assert get_neighbours(trials[0], query).next_failed == trials[2].pk
