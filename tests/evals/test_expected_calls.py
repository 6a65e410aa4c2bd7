"""Tests of expected calls and of the grades of calls, for every kind of task."""

from typing import Any

import pytest

from tests.evals.causes.hand_made_steps import build_steps
from tests.evals.records import build_calling_turn, build_result, build_right_arguments, build_text_turn
from toolbench.engine.events import ToolResult
from toolbench.engine.types import SchemaError
from toolbench.evals import scenarios
from toolbench.evals.agents.verdict import AGENT_ORDER, TOOL_BY_AGENT
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.scenario import BfclScenario
from toolbench.evals.expected_calls import CallGrades, ExpectedCalls, grade_calls
from toolbench.evals.types import PUBLISHED_WORDING, Scenario
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase
from toolbench.evals.user_cases.scenario import UserCaseScenario


def graded(scenario: Scenario, *results: ToolResult) -> tuple[int, int]:
    """(right, asked) of calls in one answer."""
    due = scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))
    found = grade_calls(build_steps(build_calling_turn(0, *results)), due)
    return found.right, found.graded


def own(expect: CaseExpectation, **rest: Any) -> UserCaseScenario:
    return UserCaseScenario("mine", 1, "", UserCase(({"role": "user", "content": "Hi"},), (), expect, **rest))


PAIR = own(CaseExpectation(calls=(ExpectedCall("book", {"at": 1}), ExpectedCall("book", {"at": {"$any_of": [2, 3]}}))))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (({"at": 1}, {"at": 3}), (2, 2)),
        (({"at": 3}, {"at": 1}), (2, 2)),  # the order does not matter
        (({"at": 1}, {"at": 1}), (1, 2)),  # the second one was due for something else
        (({"at": 1}, {"at": 2}, {"at": 1}), (2, 2)),  # one too many: nothing is left to ask of it
        (({"at": 9}, {"at": 1, "more": 0}), (0, 2)),
    ],
)
def test_calls_of_ones_own_case_are_set_against_those_expected(
    given: tuple[dict[str, int], ...], expected: tuple[int, int]
) -> None:
    assert graded(PAIR, *(build_result("book", item) for item in given)) == expected


def test_grade_calls_names_paths_where_the_nearest_expected_call_differs() -> None:
    far, near = (
        ExpectedCall("book", {"at": 1, "day": 2, "seats": [{"row": 3}]}),
        ExpectedCall("book", {"at": 5, "day": 6}),
    )
    scenario = own(CaseExpectation(calls=(far, near)))
    expected = scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))
    results = (
        build_result("book", {"at": 5, "day": 7}),
        build_result("book", {"at": 1, "day": 2, "seats": [{"row": 4}]}),
    )
    grades = grade_calls(build_steps(build_calling_turn(0, *results)), expected)
    assert grades.wrong_paths == ("$.day", "$.seats[0].row")


def test_only_valid_calls_of_a_tool_that_is_due_are_asked() -> None:
    broken = build_result("book", {"at": 1}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.at", "type", "")])
    unread = build_result("book", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR")
    assert graded(PAIR, broken, unread, build_result("other", {"at": 1})) == (0, 0)


def test_a_valid_call_that_its_tool_failed_on_counts_by_its_arguments() -> None:
    assert graded(PAIR, build_result("book", {"at": 1}, code="TOOL_FAILED")) == (1, 1)


def test_parallel_calls_of_a_pack_are_each_asked() -> None:
    scenario = scenarios.lookup_scenario("parallel_same")
    calls = scenario.draw_instance(0, kind=PUBLISHED_WORDING).values["calls"]
    right = [build_result(call["tool"], call["arguments"]) for call in calls]
    assert len(right) > 1
    assert graded(scenario, *right) == (len(right), len(right))
    assert graded(scenario, right[0], build_result(calls[1]["tool"], {"no": "such"})) == (1, 2)


def test_an_agents_call_is_right_when_all_its_checks_hold() -> None:
    chain = scenarios.lookup_scenario("agent_chain")
    values = chain.draw_instance(0, kind=PUBLISHED_WORDING).values
    right = [build_result(TOOL_BY_AGENT[agent], build_right_arguments(agent, values)) for agent in AGENT_ORDER]
    assert graded(chain, *right) == (4, 4)
    wrong = build_result("select_tables", {"relevant_tables": [], "reasoning": ""})
    assert graded(chain, right[0], wrong) == (1, 2)
    table = scenarios.lookup_scenario("agent_table")
    assert graded(
        table,
        build_result(
            "select_tables", build_right_arguments("table", table.draw_instance(0, kind=PUBLISHED_WORDING).values)
        ),
    ) == (1, 1)


def test_a_public_case_takes_what_its_own_rules_take() -> None:
    parameters = {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "sky.look", "description": "", "parameters": parameters}
    answers = ({"sky.look": {"city": ["Oslo"]}}, {"sky.look": {"city": ["Bergen", "Bergen, Norway"]}})
    case = BfclCase("parallel_0", "parallel", ({"role": "user", "content": "?"},), (function,), answers)
    scenario = BfclScenario("bfcl", 1, "", case)
    assert graded(scenario, build_result("sky_look", {"city": "oslo"}), build_result("sky_look", {"city": "Rome"})) == (
        1,
        2,
    )


def test_one_call_of_a_fixed_tool_is_asked_for_its_one_argument() -> None:
    weather = scenarios.lookup_scenario("weather")
    city = weather.draw_instance(0, kind=PUBLISHED_WORDING).values["city"]
    assert graded(weather, build_result("get_weather", {"city": city.upper()})) == (1, 1)
    assert graded(weather, build_result("get_weather", {"city": "Nowhere"})) == (0, 1)


def test_a_state_says_that_a_call_is_due_but_not_with_which_arguments() -> None:
    assert scenarios.lookup_scenario("happy_path").build_expected_calls(
        scenarios.lookup_scenario("happy_path").draw_instance(0)
    ) == ExpectedCalls(True, tools=("state_patch",))


@pytest.mark.parametrize(
    ("slug", "due"), [("restraint_plain", False), ("chat_plain", False), ("weather", True), ("recovery_busy", True)]
)
def test_each_instance_says_whether_a_call_is_due(slug: str, due: bool) -> None:
    scenario = scenarios.lookup_scenario(slug)
    assert {scenario.build_expected_calls(scenario.draw_instance(seed)).needs_call for seed in range(5)} == {due}


@pytest.mark.parametrize(
    ("expect", "due"),
    [
        (CaseExpectation(calls=(ExpectedCall("book"),)), True),
        (CaseExpectation(no_call=True), False),
        (CaseExpectation(state={"/a": 1}), True),
        (CaseExpectation(state={"/here": 1}), None),  # it stands there from the beginning
        (CaseExpectation(checks=({"called": "book"},)), True),
        (CaseExpectation(checks=({"called": "book", "times": 0},)), None),
        (CaseExpectation(checks=({"calls_at_most": 0},)), False),
        (CaseExpectation(checks=({"answer_contains": "yes"},)), None),
    ],
)
def test_ones_own_case_may_leave_open_whether_a_call_is_due(expect: CaseExpectation, due: bool | None) -> None:
    scenario = own(expect, initial={"here": 1})
    assert scenario.build_expected_calls(scenario.draw_instance(0)).needs_call is due


def test_without_tools_in_the_request_no_call_is_due() -> None:
    assert grade_calls(build_steps(build_text_turn(0, "hi")), ExpectedCalls(True)) == CallGrades(True)
    assert grade_calls(build_steps(build_text_turn(0, "hi", tools_sent=False)), ExpectedCalls(True)) == CallGrades(None)
