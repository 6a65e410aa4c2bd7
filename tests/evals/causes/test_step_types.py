"""Tests of the steps that classification reads."""

from dataclasses import replace

from tests.evals.records import build_result
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun


def test_tool_run_tool_is_the_one_that_answered() -> None:
    result = build_result("state_get", {})
    dotted = replace(result, call=replace(result.call, name="state.get"))
    assert ToolRun(0, 0, dotted).tool == "state_get"
    nameless = replace(dotted, envelope=replace(result.envelope, tool_name=""))
    assert ToolRun(0, 0, nameless).tool == "state.get"


def test_tool_run_ok_is_that_of_its_result() -> None:
    assert ToolRun(0, 0, build_result("state_get", {})).ok
    assert not ToolRun(0, 0, build_result("state_get", {}, code="INTERNAL_ERROR")).ok


def test_exchange_attempt_reports_no_tool_refusal_by_default() -> None:
    assert not ExchangeAttempt(1, 0, True, None, "unavailable").is_tools_error
