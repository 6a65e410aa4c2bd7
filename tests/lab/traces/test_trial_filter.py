"""The address decides, and nothing in it can break the page."""

import pytest
from django.http import QueryDict

from toolbench.lab.traces.trial_filter import TrialFilter


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
