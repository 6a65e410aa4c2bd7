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
