from typing import Any

import pytest

from tests.evals.records import build_calling_turn, build_cut_turn, build_ended, build_result, build_text_turn
from toolbench.engine.events import EndReason, ToolResult
from toolbench.engine.types import JsonObject
from toolbench.evals.types import Verdict
from toolbench.evals.user_cases.definition import UserCase, case_to_json
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

TOOLS, TWO_TOOLS = (
    [
        {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
        for name in names
    ]
    for names in (("cancel",), ("cancel", "look"))
)


def build_case(expect: Any, **rest: Any) -> UserCase:
    return parse_case({"tools": TOOLS, "messages": "Cancel order 17.", "expect": expect, **rest})


def judge_trial(case: UserCase, *turns: Any, end: EndReason = EndReason.FINAL) -> Verdict:
    scenario = UserCaseScenario("mine", 3, "", case)
    instance = scenario.draw_instance(0)
    workspace = scenario.open(instance)
    for turn in turns:
        for result in turn.results:
            workspace.call(result.call.name, result.arguments, "c")
    return scenario.judge(instance, build_ended(*turns, end=end), workspace)


def test_user_case_scenario_names_first_wrong_argument_with_its_place() -> None:
    case = build_case({"name": "cancel", "arguments": {"id": 17}}, turns=1)
    verdict = judge_trial(
        case, build_calling_turn(0, build_result("cancel", {"id": 71})), end=EndReason.MAX_TURNS_EXCEEDED
    )
    assert (verdict.outcome, verdict.failure_class) == ("fail", "wrong_arguments")
    assert verdict.first_bad is not None
    assert (verdict.first_bad.path, verdict.first_bad.call) == ("$.id", 0)


CANCEL, LOOK = build_result("cancel", {"id": 17}), build_result("look", {"id": 17})
WRONG_LOOK = build_result("look", {"id": 18})
CALLS = [{"name": name, "arguments": {"id": 17}} for name in ("cancel", "look")]


@pytest.mark.parametrize(
    ("expect", "made", "failure_class", "turn"),
    [
        ({"calls": CALLS}, [CANCEL], "missing_call", 1),
        ({"calls": CALLS[:1]}, [LOOK], "wrong_tool", 0),
        ({"calls": CALLS[:1], "others": True}, [LOOK], "missing_call", 1),
        ({"calls": CALLS, "ordered": True}, [LOOK, CANCEL], "wrong_order", 1),
        ({"calls": CALLS, "ordered": True}, [LOOK], "missing_call", 1),
        ({"calls": CALLS, "ordered": True}, [WRONG_LOOK, CANCEL], "wrong_arguments", 0),
        ({"checks": [{"called": "cancel"}]}, [LOOK], "missing_call", 1),
        ({"checks": [{"called": "look", "times": 2}]}, [LOOK], "missing_call", 1),
        ({"checks": [{"called": "look", "times": 1}]}, [LOOK, LOOK], "too_many_calls", 1),
        ({"checks": [{"called": "look", "times": 0}]}, [LOOK], "wrong_tool", 1),
        ({"checks": [{"not_called": "look"}]}, [LOOK], "wrong_tool", 1),
        ({"checks": [{"calls_at_most": 1}]}, [LOOK, CANCEL], "too_many_calls", 1),
        ({"checks": [{"before": ["cancel", "look"]}]}, [LOOK, CANCEL], "wrong_order", 1),
        ({"checks": [{"before": ["cancel", "look"]}]}, [LOOK], "missing_call", 1),
        ({"state": {"/17": "late"}, "checks": [{"not_called": "look"}]}, [LOOK], "wrong_state", 1),
    ],
)
def test_user_case_scenario_has_a_failure_class_for_each_wrong_call(
    expect: JsonObject, made: list[ToolResult], failure_class: str, turn: int
) -> None:
    verdict = judge_trial(
        build_case(expect, tools=TWO_TOOLS), build_calling_turn(0, *made), build_text_turn(1, "Done.")
    )
    assert (verdict.outcome, verdict.failure_class) == ("fail", failure_class)
    assert verdict.first_bad is not None
    assert verdict.first_bad.turn == turn
    is_at_calls = (verdict.first_bad.path or "").endswith("tool_calls") or verdict.first_bad.call is not None
    assert is_at_calls == (failure_class != "wrong_state")


def test_user_case_scenario_is_decided_by_the_state_after_its_calls() -> None:
    results = {"cancel": {"fixed": "ok", "set": {"/17": "$why"}}}
    case = build_case({"state": {"/17": "late"}}, results=results, initial={"17": "open"})
    final_turn = build_text_turn(1, "Done.")
    assert (
        judge_trial(case, build_calling_turn(0, build_result("cancel", {"why": "late"})), final_turn).outcome == "pass"
    )
    assert judge_trial(case, build_calling_turn(0, build_result("cancel", {"why": "no"})), final_turn).outcome == "fail"


def test_user_case_scenario_needless_call_fails() -> None:
    case = build_case({"no_call": True})
    assert judge_trial(case, build_text_turn(0, "There is nothing to do.")).outcome == "pass"
    assert (
        judge_trial(case, build_calling_turn(0, build_result("cancel", {})), build_text_turn(1, "x")).failure_class
        == "needless_call"
    )


CUT_IN_CALL = build_cut_turn(0, "Sure. ", build_result("cancel", '{"id'))


@pytest.mark.parametrize(
    ("turns", "failure_class"),
    [
        ([build_text_turn(0, " \u200b")], "empty_answer"),
        ([CUT_IN_CALL], "stream_cut"),
        ([build_cut_turn(0, "Sure. ")], "stream_cut"),
        ([CUT_IN_CALL, build_text_turn(1, "Bye.")], "stream_cut"),
    ],
)
def test_user_case_scenario_without_call_needs_a_whole_answer(turns: list[Any], failure_class: str) -> None:
    for checks in ([], [{"answer_lacks": "sorry"}]):
        verdict = judge_trial(build_case({"no_call": True, "checks": checks}), *turns)
        assert (verdict.outcome, verdict.failure_class) == ("fail", failure_class)


def test_user_case_scenario_draws_one_instance_with_layer_and_version() -> None:
    case = build_case({"name": "cancel", "arguments": {}}, turns=1, parallel=True)
    instance = UserCaseScenario("mine", 3, "", case).draw_instance(5)
    assert (instance.version, instance.prompt_version, instance.user_text) == (3, "3", "Cancel order 17.")
    assert instance.layer == {"max_turns": 1, "request_overrides": {"parallel_tool_calls": True}}


def test_case_to_json_with_matcher_is_parsed_to_the_same_case() -> None:
    case = build_case(
        {"calls": [{"name": "cancel", "arguments": {"id": {"$type": "integer"}}}], "others": True}, turns=2
    )
    assert parse_case(case_to_json(case)) == case


def test_rule_of_user_case_scenario_names_what_its_expectations_need() -> None:
    call = {"name": "cancel", "arguments": {"id": 17}}
    only = UserCaseScenario("mine", 3, "", build_case({"calls": [call]}))
    assert only.rule == "Every expected call is made with the expected arguments. No other call is made."
    others = UserCaseScenario("mine", 3, "", build_case({"calls": [call], "others": True}))
    assert others.rule == "Every expected call is made with the expected arguments. Other calls are allowed."
    no_call = UserCaseScenario("mine", 3, "", build_case({"no_call": True, "checks": [{"answer_asks": True}]}))
    assert no_call.rule == "The model answers and calls no tool. Every check holds."
