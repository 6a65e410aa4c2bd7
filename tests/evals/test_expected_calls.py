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


def grade(scenario: Scenario, *results: ToolResult) -> tuple[int, int]:
    """Return the numbers of right and of graded calls in one answer."""
    expected_calls = scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))
    found = grade_calls(build_steps(build_calling_turn(0, *results)), expected_calls)
    return found.right, found.graded


def build_case_scenario(expect: CaseExpectation, **rest: Any) -> UserCaseScenario:
    return UserCaseScenario("mine", 1, "", UserCase(({"role": "user", "content": "Hi"},), (), expect, **rest))


PAIR = build_case_scenario(
    CaseExpectation(calls=(ExpectedCall("book", {"at": 1}), ExpectedCall("book", {"at": {"$any_of": [2, 3]}})))
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (({"at": 1}, {"at": 3}), (2, 2)),
        (({"at": 3}, {"at": 1}), (2, 2)),  # the order does not matter
        (({"at": 1}, {"at": 1}), (1, 2)),  # the second expected call has other arguments
        (({"at": 1}, {"at": 2}, {"at": 1}), (2, 2)),  # an additional call is not graded
        (({"at": 9}, {"at": 1, "more": 0}), (0, 2)),
    ],
)
def test_grade_calls_of_user_case_matches_calls_in_any_order(
    given: tuple[dict[str, int], ...], expected: tuple[int, int]
) -> None:
    assert grade(PAIR, *(build_result("book", item) for item in given)) == expected


def test_grade_calls_names_paths_where_the_nearest_expected_call_differs() -> None:
    far, near = (
        ExpectedCall("book", {"at": 1, "day": 2, "seats": [{"row": 3}]}),
        ExpectedCall("book", {"at": 5, "day": 6}),
    )
    scenario = build_case_scenario(CaseExpectation(calls=(far, near)))
    expected = scenario.build_expected_calls(scenario.draw_instance(0, kind=PUBLISHED_WORDING))
    results = (
        build_result("book", {"at": 5, "day": 7}),
        build_result("book", {"at": 1, "day": 2, "seats": [{"row": 4}]}),
    )
    grades = grade_calls(build_steps(build_calling_turn(0, *results)), expected)
    assert grades.wrong_paths == ("$.day", "$.seats[0].row")


def test_grade_calls_matches_as_many_calls_as_possible() -> None:
    calls = (ExpectedCall("m", {"to": {"$type": "string"}}), ExpectedCall("m", {"to": "a"}))
    scenario = build_case_scenario(CaseExpectation(calls=calls))
    expected = scenario.build_expected_calls(scenario.draw_instance(0))
    results = (build_result("m", {"to": "a"}), build_result("m", {"to": "b"}))
    grades = grade_calls(build_steps(build_calling_turn(0, *results)), expected)
    assert (grades.right, grades.graded, grades.wrong_paths) == (2, 2, ())


@pytest.mark.parametrize(("others", "expected"), [(True, (1, 1)), (False, (1, 2))])
def test_grade_calls_permitted_other_call_is_not_graded(others: bool, expected: tuple[int, int]) -> None:
    expect = CaseExpectation(calls=(ExpectedCall("move", {"to": "b"}),), ordered=True, others=others)
    results = (build_result("move", {"to": "c"}), build_result("move", {"to": "b"}))
    assert grade(build_case_scenario(expect), *results) == expected


def test_grade_calls_ignores_invalid_calls_and_other_tools() -> None:
    broken = build_result("book", {"at": 1}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.at", "type", "")])
    unread = build_result("book", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR")
    assert grade(PAIR, broken, unread, build_result("other", {"at": 1})) == (0, 0)


def test_grade_calls_valid_call_of_a_failing_tool_is_graded() -> None:
    assert grade(PAIR, build_result("book", {"at": 1}, code="TOOL_FAILED")) == (1, 1)


def test_grade_calls_of_pack_grades_each_parallel_call() -> None:
    scenario = scenarios.lookup_scenario("parallel_same")
    calls = scenario.draw_instance(0, kind=PUBLISHED_WORDING).values["calls"]
    right = [build_result(call["tool"], call["arguments"]) for call in calls]
    assert len(right) > 1
    assert grade(scenario, *right) == (len(right), len(right))
    assert grade(scenario, right[0], build_result(calls[1]["tool"], {"no": "such"})) == (1, 2)


def test_grade_calls_agent_call_is_right_if_all_checks_pass() -> None:
    chain = scenarios.lookup_scenario("agent_chain")
    values = chain.draw_instance(0, kind=PUBLISHED_WORDING).values
    right = [build_result(TOOL_BY_AGENT[agent], build_right_arguments(agent, values)) for agent in AGENT_ORDER]
    assert grade(chain, *right) == (4, 4)
    wrong = build_result("select_tables", {"relevant_tables": [], "reasoning": ""})
    assert grade(chain, right[0], wrong) == (1, 2)
    table = scenarios.lookup_scenario("agent_table")
    assert grade(
        table,
        build_result(
            "select_tables", build_right_arguments("table", table.draw_instance(0, kind=PUBLISHED_WORDING).values)
        ),
    ) == (1, 1)


def test_grade_calls_of_bfcl_case_follows_its_rules() -> None:
    parameters = {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "sky.look", "description": "", "parameters": parameters}
    answers = ({"sky.look": {"city": ["Oslo"]}}, {"sky.look": {"city": ["Bergen", "Bergen, Norway"]}})
    case = BfclCase("parallel_0", "parallel", ({"role": "user", "content": "?"},), (function,), answers)
    scenario = BfclScenario("bfcl", 1, "", case)
    assert grade(scenario, build_result("sky_look", {"city": "oslo"}), build_result("sky_look", {"city": "Rome"})) == (
        1,
        2,
    )


def test_grade_calls_single_call_is_graded_by_its_argument() -> None:
    weather = scenarios.lookup_scenario("weather")
    city = weather.draw_instance(0, kind=PUBLISHED_WORDING).values["city"]
    assert grade(weather, build_result("get_weather", {"city": city.upper()})) == (1, 1)
    assert grade(weather, build_result("get_weather", {"city": "Nowhere"})) == (0, 1)


def test_build_expected_calls_of_state_scenario_has_no_arguments() -> None:
    assert scenarios.lookup_scenario("happy_path").build_expected_calls(
        scenarios.lookup_scenario("happy_path").draw_instance(0)
    ) == ExpectedCalls(True, tools=("state_patch",))


@pytest.mark.parametrize(
    ("slug", "needs_call"),
    [("restraint_plain", False), ("chat_plain", False), ("weather", True), ("recovery_busy", True)],
)
def test_build_expected_calls_of_every_instance_has_needs_call(slug: str, needs_call: bool) -> None:
    scenario = scenarios.lookup_scenario(slug)
    assert {scenario.build_expected_calls(scenario.draw_instance(seed)).needs_call for seed in range(5)} == {needs_call}


@pytest.mark.parametrize(
    ("expect", "needs_call"),
    [
        (CaseExpectation(calls=(ExpectedCall("book"),)), True),
        (CaseExpectation(no_call=True), False),
        (CaseExpectation(state={"/a": 1}), True),
        (CaseExpectation(state={"/here": 1}), None),  # the initial state has it already
        (CaseExpectation(checks=({"called": "book"},)), True),
        (CaseExpectation(checks=({"called": "book", "times": 0},)), None),
        (CaseExpectation(checks=({"calls_at_most": 0},)), False),
        (CaseExpectation(checks=({"answer_contains": "yes"},)), None),
    ],
)
def test_build_expected_calls_of_user_case_may_leave_needs_call_open(
    expect: CaseExpectation, needs_call: bool | None
) -> None:
    scenario = build_case_scenario(expect, initial={"here": 1})
    assert scenario.build_expected_calls(scenario.draw_instance(0)).needs_call is needs_call


def test_grade_calls_without_tools_in_request_leaves_call_expected_open() -> None:
    assert grade_calls(build_steps(build_text_turn(0, "hi")), ExpectedCalls(True)) == CallGrades(True)
    assert grade_calls(build_steps(build_text_turn(0, "hi", tools_sent=False)), ExpectedCalls(True)) == CallGrades(None)
