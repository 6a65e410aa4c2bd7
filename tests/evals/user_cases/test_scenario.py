from typing import Any

from tests.evals.records import calling, ended, result, saying
from toolbench.engine.events import End
from toolbench.evals.types import Verdict
from toolbench.evals.user_cases.definition import OwnCase, case_json
from toolbench.evals.user_cases.parse import case_of
from toolbench.evals.user_cases.scenario import OwnScenario

TOOLS = [{"type": "function", "function": {"name": "cancel", "description": "", "parameters": {"type": "object"}}}]


def case(expect: Any, **rest: Any) -> OwnCase:
    return case_of({"tools": TOOLS, "messages": "Cancel order 17.", "expect": expect, **rest})


def verdict(told: OwnCase, *turns: Any, end: End = End.FINAL) -> Verdict:
    scenario = OwnScenario("mine", 3, "", told)
    instance = scenario.draw(0)
    workspace = scenario.open(instance)
    for turn in turns:
        for one in turn.results:
            workspace.call(one.call.name, one.arguments, "c")
    return scenario.judge(instance, ended(*turns, end=end), workspace)


def test_the_first_wrong_argument_is_named_with_its_place() -> None:
    told = case({"name": "cancel", "arguments": {"id": 17}}, turns=1)
    found = verdict(told, calling(0, result("cancel", {"id": 71})), end=End.MAX_TURNS_EXCEEDED)
    assert (found.outcome, found.failure_class) == ("fail", "wrong_arguments")
    assert found.first_bad is not None
    assert (found.first_bad.path, found.first_bad.call) == ("$.id", 0)


def test_the_state_that_the_tools_leave_decides() -> None:
    results = {"cancel": {"fixed": "ok", "set": {"/17": "$why"}}}
    told = case({"state": {"/17": "late"}}, results=results, initial={"17": "open"})
    said = saying(1, "Done.")
    assert verdict(told, calling(0, result("cancel", {"why": "late"})), said).outcome == "pass"
    assert verdict(told, calling(0, result("cancel", {"why": "no"})), said).outcome == "fail"


def test_a_needless_call_fails_a_case_that_expects_none() -> None:
    told = case({"no_call": True})
    assert verdict(told, saying(0, "There is nothing to do.")).outcome == "pass"
    assert verdict(told, calling(0, result("cancel", {})), saying(1, "x")).failure_class == "needless_call"


def test_a_case_is_one_instance_with_its_layer_and_its_version() -> None:
    told = case({"name": "cancel", "arguments": {}}, turns=1, parallel=True)
    instance = OwnScenario("mine", 3, "", told).draw(5)
    assert (instance.version, instance.prompt_version, instance.user_text) == (3, "3", "Cancel order 17.")
    assert instance.layer == {"max_turns": 1, "request_overrides": {"parallel_tool_calls": True}}


def test_a_definition_is_plain_data_and_comes_back_the_same() -> None:
    told = case({"calls": [{"name": "cancel", "arguments": {"id": {"$type": "integer"}}}], "others": True}, turns=2)
    assert case_of(case_json(told)) == told
