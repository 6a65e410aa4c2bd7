"""Whether a call is due, and whose arguments are right: hand-made calls against every kind of task."""

from typing import Any

import pytest

from tests.evals.causes.wire import steps
from tests.evals.records import calling, result, right_arguments, saying
from toolbench.engine.events import ToolResult
from toolbench.engine.messages import SchemaError
from toolbench.evals import scenarios
from toolbench.evals.agents.verdict import ORDER, TOOLS
from toolbench.evals.bfcl.cases import Case
from toolbench.evals.bfcl.scenario import BfclScenario
from toolbench.evals.expected_calls import Due, Graded, grade
from toolbench.evals.types import PARITY, Scenario
from toolbench.evals.user_cases.definition import Expected, ExpectedCall, OwnCase
from toolbench.evals.user_cases.scenario import OwnScenario


def graded(scenario: Scenario, *results: ToolResult) -> tuple[int, int]:
    """(right, asked) of calls in one answer."""
    due = scenario.due(scenario.draw(0, kind=PARITY))
    found = grade(steps(calling(0, *results)), due)
    return found.right, found.asked


def own(expect: Expected, **rest: Any) -> OwnScenario:
    return OwnScenario("mine", 1, "", OwnCase(({"role": "user", "content": "Hi"},), (), expect, **rest))


PAIR = own(Expected(calls=(ExpectedCall("book", {"at": 1}), ExpectedCall("book", {"at": {"$any_of": [2, 3]}}))))


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
    assert graded(PAIR, *(result("book", one) for one in given)) == expected


def test_only_valid_calls_of_a_tool_that_is_due_are_asked() -> None:
    broken = result("book", {"at": 1}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.at", "type", "")])
    unread = result("book", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR")
    assert graded(PAIR, broken, unread, result("other", {"at": 1})) == (0, 0)


def test_a_valid_call_that_its_tool_failed_on_counts_by_its_arguments() -> None:
    assert graded(PAIR, result("book", {"at": 1}, code="TOOL_FAILED")) == (1, 1)


def test_parallel_calls_of_a_pack_are_each_asked() -> None:
    scenario = scenarios.find("parallel_same")
    calls = scenario.draw(0, kind=PARITY).values["calls"]
    right = [result(call["tool"], call["arguments"]) for call in calls]
    assert len(right) > 1
    assert graded(scenario, *right) == (len(right), len(right))
    assert graded(scenario, right[0], result(calls[1]["tool"], {"no": "such"})) == (1, 2)


def test_an_agents_call_is_right_when_all_its_checks_hold() -> None:
    chain = scenarios.find("agent_chain")
    values = chain.draw(0, kind=PARITY).values
    right = [result(TOOLS[agent], right_arguments(agent, values)) for agent in ORDER]
    assert graded(chain, *right) == (4, 4)
    wrong = result("select_tables", {"relevant_tables": [], "reasoning": ""})
    assert graded(chain, right[0], wrong) == (1, 2)
    table = scenarios.find("agent_table")
    assert graded(table, result("select_tables", right_arguments("table", table.draw(0, kind=PARITY).values))) == (1, 1)


def test_a_public_case_takes_what_its_own_rules_take() -> None:
    parameters = {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "sky.look", "description": "", "parameters": parameters}
    answers = ({"sky.look": {"city": ["Oslo"]}}, {"sky.look": {"city": ["Bergen", "Bergen, Norway"]}})
    case = Case("parallel_0", "parallel", ({"role": "user", "content": "?"},), (function,), answers)
    scenario = BfclScenario("bfcl", 1, "", case)
    assert graded(scenario, result("sky_look", {"city": "oslo"}), result("sky_look", {"city": "Rome"})) == (1, 2)


def test_one_call_of_a_fixed_tool_is_asked_for_its_one_argument() -> None:
    weather = scenarios.find("weather")
    city = weather.draw(0, kind=PARITY).values["city"]
    assert graded(weather, result("get_weather", {"city": city.upper()})) == (1, 1)
    assert graded(weather, result("get_weather", {"city": "Nowhere"})) == (0, 1)


def test_a_state_says_that_a_call_is_due_but_not_with_which_arguments() -> None:
    assert scenarios.find("happy_path").due(scenarios.find("happy_path").draw(0)) == Due(True, tools=("state_patch",))


@pytest.mark.parametrize(
    ("slug", "due"), [("restraint_plain", False), ("chat_plain", False), ("weather", True), ("recovery_busy", True)]
)
def test_each_instance_says_whether_a_call_is_due(slug: str, due: bool) -> None:
    scenario = scenarios.find(slug)
    assert {scenario.due(scenario.draw(seed)).call for seed in range(5)} == {due}


@pytest.mark.parametrize(
    ("expect", "due"),
    [
        (Expected(calls=(ExpectedCall("book"),)), True),
        (Expected(no_call=True), False),
        (Expected(state={"/a": 1}), True),
        (Expected(state={"/here": 1}), None),  # it stands there from the beginning
        (Expected(checks=({"called": "book"},)), True),
        (Expected(checks=({"called": "book", "times": 0},)), None),
        (Expected(checks=({"calls_at_most": 0},)), False),
        (Expected(checks=({"answer_contains": "yes"},)), None),
    ],
)
def test_ones_own_case_may_leave_open_whether_a_call_is_due(expect: Expected, due: bool | None) -> None:
    scenario = own(expect, initial={"here": 1})
    assert scenario.due(scenario.draw(0)).call is due


def test_without_tools_in_the_request_no_call_is_due() -> None:
    assert grade(steps(saying(0, "hi")), Due(True)) == Graded(True)
    assert grade(steps(saying(0, "hi", tools_sent=False)), Due(True)) == Graded(None)
