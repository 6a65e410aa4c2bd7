"""Tests of the comparison of the calls of a trial with the expected ones."""

from typing import Any

import pytest

from tests.evals.records import build_right_arguments
from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals import scenarios
from toolbench.evals.agents.verdict import AGENT_ORDER, TOOL_BY_AGENT
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.scenario import BfclScenario
from toolbench.evals.call_comparison import CallStatus, ComparedCalls, MadeCall, compare_calls
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.scenarios.expected import TaskExpectation
from toolbench.evals.scenarios.expected import build_expected_calls as build_pack_calls
from toolbench.evals.types import PUBLISHED_WORDING, Scenario
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase
from toolbench.evals.user_cases.scenario import UserCaseScenario

TWO = TaskExpectation(
    calls=(
        {"tool": "read", "arguments": {"id": "a"}},
        {"tool": "write", "arguments": {"id": "a", "ops": ["x"]}, "any": ["note"]},
    )
)


def due_of(scenario: Scenario) -> ExpectedCalls:
    return scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))


def own(**expect: Any) -> ExpectedCalls:
    messages = ({"role": "user", "content": "Hi"},)
    return due_of(UserCaseScenario("mine", 1, "", UserCase(messages, (), CaseExpectation(**expect))))


def call(tool: str, arguments: JsonObject | None, *, ok: bool = True) -> MadeCall:
    return MadeCall(tool, arguments, ok)


def statuses(comparison: ComparedCalls) -> list[str]:
    return [one.status.value for one in comparison.calls]


def words(comparison: ComparedCalls) -> list[tuple[str, str, str]]:
    return [(one.path, one.expected, one.got) for call in comparison.calls for one in call.differences]


def test_right_calls_are_as_expected_in_any_order() -> None:
    made = [call("write", {"id": "A ", "ops": ["x"], "note": 1}), call("read", {"id": "a"})]
    comparison = compare_calls(made, build_pack_calls(TWO))
    assert statuses(comparison) == ["as expected", "as expected"]
    assert (comparison.missing, comparison.note, words(comparison)) == ((), "", [])


def test_wrong_arguments_have_a_path_and_one_word_each() -> None:
    made = [call("write", {"ops": '["x"]', "comment": "again"})]
    comparison = compare_calls(made, build_pack_calls(TWO))
    assert statuses(comparison) == ["arguments differ"]
    assert words(comparison) == [
        ("$.id", "", "missing"), ("$.ops", "array", "string"), ("$.comment", "", "extra"),
    ]  # fmt: skip
    assert [one.tool for one in comparison.missing] == ["read"]


def test_value_of_the_same_type_differs() -> None:
    comparison = compare_calls([call("read", {"id": "b"})], build_pack_calls(TWO))
    assert words(comparison) == [("$.id", "", "differs")]


def test_refused_call_is_compared_with_the_call_that_corrected_it() -> None:
    made = [call("read", {"id": 1}, ok=False), call("read", {"id": 1}, ok=False), call("read", {"id": "a"})]
    comparison = compare_calls(made, build_pack_calls(TWO))
    assert statuses(comparison) == ["arguments differ", "arguments differ", "as expected"]
    assert [one.tool for one in comparison.missing] == ["write"]


def test_wrong_call_that_succeeds_after_a_refused_one_is_compared_too() -> None:
    made = [call("read", {"id": 1}, ok=False), call("read", {"id": "b"})]
    assert statuses(compare_calls(made, build_pack_calls(TWO))) == ["arguments differ", "arguments differ"]


def test_right_call_that_a_fault_refused_is_as_expected_when_repeated() -> None:
    made = [call("read", {"id": "a"}, ok=False), call("read", {"id": "a"})]
    assert statuses(compare_calls(made, build_pack_calls(TWO))) == ["as expected", "as expected"]


def test_calls_nobody_expects_are_extra() -> None:
    made = [call("read", {"id": "a"}), call("read", {"id": "a"}), call("drop", {})]
    assert statuses(compare_calls(made, build_pack_calls(TWO))) == ["as expected", "extra", "extra"]


def test_calls_of_an_ordered_case_may_be_out_of_order() -> None:
    calls = (ExpectedCall("first", {"at": {"$any_of": [1, 2]}}), ExpectedCall("second"))
    made = [call("second", {}), call("first", {"at": 2}), call("other", {})]
    assert statuses(compare_calls(made, own(calls=calls, ordered=True, others=True))) == [
        "as expected", "out of order", "not compared",
    ]  # fmt: skip
    assert statuses(compare_calls(made, own(calls=calls))) == ["as expected", "as expected", "extra"]


def test_matcher_is_no_type() -> None:
    comparison = compare_calls(
        [call("first", {"at": 3})], own(calls=(ExpectedCall("first", {"at": {"$any_of": [1]}}),))
    )
    assert words(comparison) == [("$.at", "", "differs")]


def test_task_without_calls_says_so_and_every_call_is_extra() -> None:
    comparison = compare_calls([call("get_weather", {})], due_of(scenarios.lookup_scenario("chat_only")))
    assert statuses(comparison) == ["extra"]
    assert comparison.note == "The task expects no call."


def test_task_by_its_state_says_that_its_arguments_are_not_fixed() -> None:
    error = SchemaError("$.ops", "type", "expected array, got string")
    made = [MadeCall("state_patch", {"ops": "[]"}, False, (error,))]
    comparison = compare_calls(made, due_of(scenarios.lookup_scenario("type_error_recovery")))
    assert "no fixed arguments for state_patch" in comparison.note
    assert statuses(comparison) == ["not compared"]
    assert words(comparison) == [("$.ops", "", "string")]


@pytest.mark.parametrize("scenario", scenarios.list_scenarios(), ids=lambda scenario: scenario.slug)
def test_right_arguments_of_every_scenario_fit_their_own_call(scenario: Scenario) -> None:
    due = due_of(scenario)
    shown = [expected for expected in due.calls if expected.arguments is not None]
    for expected in shown:
        assert expected.is_match(expected.arguments or {})
        assert expected.list_wrong_paths(expected.arguments or {}) == ()
    made = [MadeCall(expected.tool, expected.arguments, True) for expected in shown]
    assert set(statuses(compare_calls(made, due))) <= {"as expected"}


def test_agents_name_the_path_of_each_failed_check() -> None:
    scenario = next(one for one in scenarios.list_scenarios() if len(getattr(one, "agents", ())) == 4)
    instance = scenario.draw_instance(0, kind=PUBLISHED_WORDING)
    right = [
        MadeCall(TOOL_BY_AGENT[agent], build_right_arguments(agent, instance.values), True) for agent in AGENT_ORDER
    ]
    due = scenario.build_expected_calls(instance)
    assert set(statuses(compare_calls(right, due))) == {"as expected"}
    wrong = [MadeCall("select_tables", {"relevant_tables": "orders"}, True)]
    assert ("$.relevant_tables", "", "differs") in words(compare_calls(wrong, due))
    assert statuses(compare_calls(right[::-1], due)) == ["as expected", *["out of order"] * 3]


def test_bfcl_case_shows_an_accepted_call() -> None:
    function: JsonObject = {
        "name": "math.area",
        "description": "Return an area.",
        "parameters": {
            "type": "dict",
            "properties": {"base": {"type": "integer"}, "unit": {"type": "string"}},
            "required": ["base"],
        },
    }
    question = ({"role": "user", "content": "How large?"},)
    answers = ({"math.area": {"base": [10], "unit": ["m", ""]}},)
    case = BfclCase("simple_1", "simple", question, (function,), answers)
    due = due_of(BfclScenario("bfcl_simple_1", 1, "", case))
    assert due.calls[0].arguments == {"base": 10, "unit": "m"}
    assert statuses(compare_calls([call("math_area", {"base": 10})], due)) == ["as expected"]
    assert words(compare_calls([call("math_area", {"unit": "m", "x": 1})], due)) == [
        ("$.base", "", "missing"), ("$.x", "", "extra"),
    ]  # fmt: skip


@pytest.mark.parametrize("key", ['a["\\q"]', "x[" + "9" * 5000 + "]", "\ud800", "", "a.b"])
def test_odd_keys_of_a_model_do_no_harm(key: str) -> None:
    comparison = compare_calls([call("read", {"id": "a", key: 1})], build_pack_calls(TWO))
    assert comparison.calls[0].status is CallStatus.DIFFERENT
