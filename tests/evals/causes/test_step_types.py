"""Tests of the steps that classification reads."""

from dataclasses import replace

from tests.evals.records import build_result
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun


def test_a_call_counts_for_the_tool_that_answered_it() -> None:
    one = build_result("state_get", {})
    dotted = replace(one, call=replace(one.call, name="state.get"))
    assert ToolRun(0, 0, dotted).tool == "state_get"
    nameless = replace(dotted, envelope=replace(one.envelope, tool_name=""))
    assert ToolRun(0, 0, nameless).tool == "state.get"


def test_a_call_is_good_where_its_result_is() -> None:
    assert ToolRun(0, 0, build_result("state_get", {})).ok
    assert not ToolRun(0, 0, build_result("state_get", {}, code="INTERNAL_ERROR")).ok


def test_an_endpoint_takes_tools_unless_an_exchange_says_otherwise() -> None:
    assert not ExchangeAttempt(1, 0, True, None, "unavailable").tool_support
