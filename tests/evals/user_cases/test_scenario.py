from typing import Any

from tests.evals.records import build_calling_turn, build_ended, build_result, build_text_turn
from toolbench.engine.events import EndReason
from toolbench.evals.types import Verdict
from toolbench.evals.user_cases.definition import UserCase, case_to_json
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

TOOLS = [{"type": "function", "function": {"name": "cancel", "description": "", "parameters": {"type": "object"}}}]


def case(expect: Any, **rest: Any) -> UserCase:
    return parse_case({"tools": TOOLS, "messages": "Cancel order 17.", "expect": expect, **rest})


def verdict(told: UserCase, *turns: Any, end: EndReason = EndReason.FINAL) -> Verdict:
    scenario = UserCaseScenario("mine", 3, "", told)
    instance = scenario.draw_instance(0)
    workspace = scenario.open(instance)
    for turn in turns:
        for result in turn.results:
            workspace.call(result.call.name, result.arguments, "c")
    return scenario.judge(instance, build_ended(*turns, end=end), workspace)


def test_the_first_wrong_argument_is_named_with_its_place() -> None:
    told = case({"name": "cancel", "arguments": {"id": 17}}, turns=1)
    found = verdict(told, build_calling_turn(0, build_result("cancel", {"id": 71})), end=EndReason.MAX_TURNS_EXCEEDED)
    assert (found.outcome, found.failure_class) == ("fail", "wrong_arguments")
    assert found.first_bad is not None
    assert (found.first_bad.path, found.first_bad.call) == ("$.id", 0)


def test_the_state_that_the_tools_leave_decides() -> None:
    results = {"cancel": {"fixed": "ok", "set": {"/17": "$why"}}}
    told = case({"state": {"/17": "late"}}, results=results, initial={"17": "open"})
    said = build_text_turn(1, "Done.")
    assert verdict(told, build_calling_turn(0, build_result("cancel", {"why": "late"})), said).outcome == "pass"
    assert verdict(told, build_calling_turn(0, build_result("cancel", {"why": "no"})), said).outcome == "fail"


def test_a_needless_call_fails_a_case_that_expects_none() -> None:
    told = case({"no_call": True})
    assert verdict(told, build_text_turn(0, "There is nothing to do.")).outcome == "pass"
    assert (
        verdict(told, build_calling_turn(0, build_result("cancel", {})), build_text_turn(1, "x")).failure_class
        == "needless_call"
    )


def test_a_case_is_one_instance_with_its_layer_and_its_version() -> None:
    told = case({"name": "cancel", "arguments": {}}, turns=1, parallel=True)
    instance = UserCaseScenario("mine", 3, "", told).draw_instance(5)
    assert (instance.version, instance.prompt_version, instance.user_text) == (3, "3", "Cancel order 17.")
    assert instance.layer == {"max_turns": 1, "request_overrides": {"parallel_tool_calls": True}}


def test_a_definition_is_plain_data_and_comes_back_the_same() -> None:
    told = case({"calls": [{"name": "cancel", "arguments": {"id": {"$type": "integer"}}}], "others": True}, turns=2)
    assert parse_case(case_to_json(told)) == told
