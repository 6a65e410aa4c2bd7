"""Links to the previous and the next trial of a filter."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial import previous_next
from toolbench.lab.results.trial.previous_next import get_neighbours
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.results.trial_list.sort_columns import SORTS

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


def make_varied_trials() -> None:
    """Make trials of two runs with equal, different and unknown values in the columns that lists are sorted by."""
    start = datetime(2026, 11, 1, tzinfo=UTC)
    for name, profile, scenario in (("vendor/b", "plain", "weather"), ("vendor/a", "creative", "happy_path")):
        cell = make_cell(make_config(make_run(), make_model(name), profile=profile), scenario)
        for number, outcome in enumerate(("pass", "fail", "queued", "infra", "fail", "running", "pass")):
            fields: dict[str, Any] = {"retries": number % 3, "turns": number % 2, "input_tokens": 100 * (number % 4)}
            fields |= {"cause": "wrong_argument" if outcome == "fail" else ""}
            fields |= {"duration_ms": None if number in (2, 4) else 500.0 - number % 2}
            fields |= {"started_at": None if outcome == "queued" else start - timedelta(hours=number % 3)}
            make_trial(cell, outcome, **fields)


@pytest.mark.parametrize("sort", SORTS)
def test_get_neighbours_follows_order_of_list(sort: str) -> None:
    make_varied_trials()
    query = TrialFilter(sort=sort)
    listed = [row.id for row in get_trials(query).rows]
    neighbours = [get_neighbours(Trial.objects.get(pk=pk), query) for pk in listed]
    assert [neighbour.next for neighbour in neighbours] == [*listed[1:], None]
    assert [neighbour.previous for neighbour in neighbours] == [None, *listed[:-1]]


def test_get_neighbours_stays_in_newest_trials_of_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previous_next, "MAX_COUNTED_TRIALS", 2)
    cell = make_cell(make_config(make_run()))
    oldest, slow, fast = (make_trial(cell, duration_ms=duration_ms) for duration_ms in (20.0, 30.0, 10.0))
    assert get_neighbours(slow, TrialFilter(sort="slow")).next == fast.pk
    assert get_neighbours(slow, TrialFilter(sort="slow", run=cell.run_id)).next == oldest.pk
