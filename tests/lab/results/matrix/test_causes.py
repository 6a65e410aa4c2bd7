"""The most frequent cause of a cell."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.results.matrix.causes import count_causes, find_frequent_cause

pytestmark = pytest.mark.django_db


def test_find_frequent_cause_counts_only_the_named_cells(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    config = make_config(make_run())
    first, second = make_cell(config), make_cell(config, "long_arguments_guard")
    for cell, causes in ((first, ("b_cause", "a_cause", "a_cause", "")), (second, ("b_cause",))):
        for cause in causes:
            make_trial(cell, "fail" if cause else "pass", cause=cause)
    with django_assert_num_queries(1):
        counts = count_causes([config.pk], [first.scenario, second.scenario])
    keys = [(cell.scenario, cell.scenario_version) for cell in (first, second)]
    found = [find_frequent_cause(counts, [config.pk], names) for names in ([keys[0]], [keys[1]], keys)]
    assert [(cause.code, cause.count) for cause in found if cause] == [("a_cause", 2), ("b_cause", 1), ("a_cause", 2)]
    assert find_frequent_cause(counts, [config.pk + 1], keys) is None
    assert count_causes([config.pk], [second.scenario]) == {(config.pk, keys[1]): {"b_cause": 1}}
