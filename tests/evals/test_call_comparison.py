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

TWO_CALLS = TaskExpectation(
    calls=(
        {"tool": "read", "arguments": {"id": "a"}},
        {"tool": "write", "arguments": {"id": "a", "ops": ["x"]}, "any": ["note"]},
    )
)
BREAKS_SCHEMA: dict[str, Any] = {"schema_errors": (SchemaError("$.x", "extra", "is not allowed"),)}
NOT_OFFERED: dict[str, Any] = {"error_code": "TOOL_NOT_ALLOWED"}


def build_expected(scenario: Scenario) -> ExpectedCalls:
    return scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))


def build_case_expected(**expect: Any) -> ExpectedCalls:
    messages = ({"role": "user", "content": "Hi"},)
    return build_expected(UserCaseScenario("mine", 1, "", UserCase(messages, (), CaseExpectation(**expect))))


def build_call(tool: str, arguments: JsonObject | None, *, ok: bool = True) -> MadeCall:
    return MadeCall(tool, arguments, ok)


def list_statuses(comparison: ComparedCalls) -> list[str]:
    return [item.status.value for item in comparison.calls]


def list_differences(comparison: ComparedCalls) -> list[tuple[str, str, str]]:
    return [(item.path, item.expected, item.got) for call in comparison.calls for item in call.differences]


def test_compare_calls_right_calls_are_as_expected_in_any_order() -> None:
    made = [build_call("write", {"id": "A ", "ops": ["x"], "note": 1}), build_call("read", {"id": "a"})]
    comparison = compare_calls(made, build_pack_calls(TWO_CALLS))
    assert list_statuses(comparison) == ["as expected", "as expected"]
    assert (comparison.missing, comparison.note, list_differences(comparison)) == ((), "", [])


def test_compare_calls_wrong_arguments_have_path_and_difference() -> None:
    made = [build_call("write", {"ops": '["x"]', "comment": "again"})]
    comparison = compare_calls(made, build_pack_calls(TWO_CALLS))
    assert list_statuses(comparison) == ["arguments differ"]
    assert list_differences(comparison) == [
        ("$.id", "", "missing"), ("$.ops", "array", "string"), ("$.comment", "", "extra"),
    ]  # fmt: skip
    assert [item.tool for item in comparison.missing] == ["read"]


def test_compare_calls_value_of_the_same_type_differs() -> None:
    comparison = compare_calls([build_call("read", {"id": "b"})], build_pack_calls(TWO_CALLS))
    assert list_differences(comparison) == [("$.id", "", "differs")]


def test_compare_calls_refused_call_is_compared_with_its_correction() -> None:
    made = [
        build_call("read", {"id": 1}, ok=False),
        build_call("read", {"id": 1}, ok=False),
        build_call("read", {"id": "a"}),
    ]
    comparison = compare_calls(made, build_pack_calls(TWO_CALLS))
    assert list_statuses(comparison) == ["arguments differ", "arguments differ", "as expected"]
    assert [item.tool for item in comparison.missing] == ["write"]


def test_compare_calls_wrong_call_after_a_refused_one_is_compared() -> None:
    made = [build_call("read", {"id": 1}, ok=False), build_call("read", {"id": "b"})]
    assert list_statuses(compare_calls(made, build_pack_calls(TWO_CALLS))) == ["arguments differ", "arguments differ"]


def test_compare_calls_right_call_repeated_after_fault_is_as_expected() -> None:
    made = [build_call("read", {"id": "a"}, ok=False), build_call("read", {"id": "a"})]
    assert list_statuses(compare_calls(made, build_pack_calls(TWO_CALLS))) == ["as expected", "as expected"]


@pytest.mark.parametrize(("refusal", "status"), [(BREAKS_SCHEMA, "arguments differ"), (NOT_OFFERED, "extra")])
def test_compare_calls_refused_call_is_not_as_expected(refusal: dict[str, Any], status: str) -> None:
    case = build_case_expected(calls=(ExpectedCall("m", {}, more=True),))
    made = [MadeCall("m", {"x": 1}, False, **refusal), MadeCall("m", {}, True)]
    assert list_statuses(compare_calls(made[:1], case)) == [status]
    assert list_statuses(compare_calls(made, case)) == [status, "as expected"]


def test_compare_calls_unexpected_calls_are_extra() -> None:
    made = [build_call("read", {"id": "a"}), build_call("read", {"id": "a"}), build_call("drop", {})]
    assert list_statuses(compare_calls(made, build_pack_calls(TWO_CALLS))) == ["as expected", "extra", "extra"]


def test_compare_calls_matches_as_many_calls_as_possible() -> None:
    calls = (ExpectedCall("m", {"to": {"$type": "string"}}), ExpectedCall("m", {"to": "a"}))
    made = [build_call("m", {"to": "a"}), build_call("m", {"to": "b"})]
    comparison = compare_calls(made, build_case_expected(calls=calls))
    assert list_statuses(comparison) == ["as expected", "as expected"]
    assert comparison.missing == ()


def test_compare_calls_of_ordered_case_keeps_the_order_if_it_can() -> None:
    calls = (ExpectedCall("m", {"to": {"$type": "string"}}), ExpectedCall("m", {"to": "b"}))
    made = [build_call("m", {"to": to}) for to in "bcb"]
    comparison = compare_calls(made, build_case_expected(calls=calls, ordered=True, others=True))
    assert list_statuses(comparison) == ["as expected", "not compared", "as expected"]


def test_compare_calls_of_ordered_case_can_be_out_of_order() -> None:
    calls = (ExpectedCall("first", {"at": {"$any_of": [1, 2]}}), ExpectedCall("second"))
    made = [build_call("second", {}), build_call("first", {"at": 2}), build_call("other", {})]
    assert list_statuses(compare_calls(made, build_case_expected(calls=calls, ordered=True, others=True))) == [
        "as expected", "out of order", "not compared",
    ]  # fmt: skip
    assert list_statuses(compare_calls(made, build_case_expected(calls=calls))) == [
        "as expected",
        "as expected",
        "extra",
    ]


def test_compare_calls_equal_calls_are_not_out_of_order() -> None:
    expected = build_case_expected(calls=tuple(map(ExpectedCall, "aabc")), ordered=True, others=True)
    comparison = compare_calls([build_call(tool, {}) for tool in "xaacb"], expected)
    assert list_statuses(comparison) == ["not compared", "as expected", "as expected", "as expected", "out of order"]


def test_compare_calls_order_is_kept_unless_more_match_without_it() -> None:
    expected = build_case_expected(calls=tuple(map(ExpectedCall, "aba")), ordered=True)
    comparison = compare_calls([build_call("b", {}), build_call("a", {})], expected)
    assert list_statuses(comparison) == ["as expected", "as expected"]
    assert [call.tool for call in comparison.missing] == ["a"]


def test_compare_calls_value_against_a_matcher_differs() -> None:
    comparison = compare_calls(
        [build_call("first", {"at": 3})], build_case_expected(calls=(ExpectedCall("first", {"at": {"$any_of": [1]}}),))
    )
    assert list_differences(comparison) == [("$.at", "", "differs")]


def test_compare_calls_task_without_calls_makes_every_call_extra() -> None:
    comparison = compare_calls([build_call("get_weather", {})], build_expected(scenarios.lookup_scenario("chat_only")))
    assert list_statuses(comparison) == ["extra"]
    assert comparison.note == "The task expects no call."


def test_compare_calls_state_task_has_no_fixed_arguments() -> None:
    error = SchemaError("$.ops", "type", "expected array, got string")
    made = [MadeCall("state_patch", {"ops": "[]"}, False, (error,))]
    comparison = compare_calls(made, build_expected(scenarios.lookup_scenario("type_error_recovery")))
    assert "no fixed arguments for state_patch" in comparison.note
    assert list_statuses(comparison) == ["not compared"]
    assert list_differences(comparison) == [("$.ops", "", "string")]


@pytest.mark.parametrize("scenario", scenarios.list_scenarios(), ids=lambda scenario: scenario.slug)
def test_compare_calls_right_arguments_of_every_scenario_match(scenario: Scenario) -> None:
    expected_calls = build_expected(scenario)
    shown = [expected for expected in expected_calls.calls if expected.arguments is not None]
    for expected in shown:
        assert expected.is_match(expected.arguments or {})
        assert expected.list_wrong_paths(expected.arguments or {}) == ()
    made = [MadeCall(expected.tool, expected.arguments, True) for expected in shown]
    assert set(list_statuses(compare_calls(made, expected_calls))) <= {"as expected"}


def test_compare_calls_of_agents_name_path_of_each_failed_check() -> None:
    scenario = next(item for item in scenarios.list_scenarios() if len(getattr(item, "agents", ())) == 4)
    instance = scenario.draw_instance(0, kind=PUBLISHED_WORDING)
    right = [
        MadeCall(TOOL_BY_AGENT[agent], build_right_arguments(agent, instance.values), True) for agent in AGENT_ORDER
    ]
    expected_calls = scenario.build_expected_calls(instance)
    assert set(list_statuses(compare_calls(right, expected_calls))) == {"as expected"}
    wrong = [MadeCall("select_tables", {"relevant_tables": "orders"}, True)]
    assert ("$.relevant_tables", "", "differs") in list_differences(compare_calls(wrong, expected_calls))
    assert list_statuses(compare_calls(right[::-1], expected_calls)) == ["as expected", *["out of order"] * 3]


@pytest.mark.parametrize(("agent_count", "status"), [(1, "arguments differ"), (4, "as expected")])
def test_compare_calls_refused_call_is_right_only_in_a_chain(agent_count: int, status: str) -> None:
    scenario = next(item for item in scenarios.list_scenarios() if len(getattr(item, "agents", ())) == agent_count)
    instance = scenario.draw_instance(0, kind=PUBLISHED_WORDING)
    agent = AGENT_ORDER[0]
    refused = MadeCall(TOOL_BY_AGENT[agent], build_right_arguments(agent, instance.values), True, **BREAKS_SCHEMA)
    assert list_statuses(compare_calls([refused], scenario.build_expected_calls(instance))) == [status]


def test_compare_calls_of_bfcl_case_uses_an_accepted_call() -> None:
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
    expected_calls = build_expected(BfclScenario("bfcl_simple_1", 1, "", case))
    assert expected_calls.calls[0].arguments == {"base": 10, "unit": "m"}
    assert list_statuses(compare_calls([build_call("math_area", {"base": 10})], expected_calls)) == ["as expected"]
    refused = MadeCall("math_area", {"base": 10}, False, (SchemaError("$.base", "type", "expected string"),))
    assert list_statuses(compare_calls([refused], expected_calls)) == ["as expected"]
    assert list_differences(compare_calls([build_call("math_area", {"unit": "m", "x": 1})], expected_calls)) == [
        ("$.base", "", "missing"), ("$.x", "", "extra"),
    ]  # fmt: skip


@pytest.mark.parametrize("key", ['a["\\q"]', "x[" + "9" * 5000 + "]", "\ud800", "", "a.b"])
def test_compare_calls_odd_argument_names_are_differences(key: str) -> None:
    comparison = compare_calls([build_call("read", {"id": "a", key: 1})], build_pack_calls(TWO_CALLS))
    assert comparison.calls[0].status is CallStatus.DIFFERENT
    assert list_differences(comparison) == [(f"$.{key}", "", "extra")]
