"""Warnings about a comparison."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.run_choices import ADDED_MANUALLY

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("added", [False, True])
def test_list_warnings_of_manual_trials_asks_for_confirmation(added: bool) -> None:
    first, second = make_run(), make_run()
    make_trial(make_cell(make_config(first)))
    make_trial(make_cell(make_config(second)), added_by_hand=added)
    query = QueryDict(f"a_run={first.pk}&b_run={second.pk}")
    assert (ADDED_MANUALLY in get_comparison(CompareQuery.from_query(query)).warnings) == added
    assert ADDED_MANUALLY.endswith("confirm decisions that rest on them.")


def test_list_warnings_names_differences_of_trials_without_a_start() -> None:
    """Imported trials may have no start; versions that differ make them other tasks all the same."""
    runs = [make_run(imported=True) for _ in range(2)]
    for version, run in enumerate(runs, 1):
        make_trial(make_cell(make_config(run), scenario_version=version), started_at=None)
    query = QueryDict(f"a_run={runs[0].pk}&b_run={runs[1].pk}")
    warnings = get_comparison(CompareQuery.from_query(query)).warnings
    assert "Scenario versions differ: the tasks are not the same." in warnings
