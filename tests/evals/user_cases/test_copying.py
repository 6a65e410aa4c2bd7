"""Tests that a copy of a built-in scenario sends the same request and gets the same verdict."""

import json
from typing import Any

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_result, build_text_turn, run_tool
from toolbench.engine.events import EndReason, LoopResult, ToolResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario, Verdict, Workspace
from toolbench.evals.user_cases.copying import ScenarioNotCopiedError, copy_scenario, is_copyable
from toolbench.evals.user_cases.definition import case_to_json
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

COPIED = [scenario.slug for scenario in scenarios.list_scenarios() if is_copyable(scenario)]
KINDS = [(PUBLISHED_WORDING, 0), (DRAWN, 3), (DRAWN, 11)]
WITH_FAULT = [slug for slug in COPIED if slug.startswith("recovery_")]
# The pack parallel allows only methods with several calls a message; this task of it needs one call.
OTHER_METHODS = {"parallel_single": METHODS}


def copy_instance(slug: str, kind: str, seed: int) -> tuple[Scenario, Instance, UserCaseScenario]:
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(seed, kind=kind)
    return scenario, instance, UserCaseScenario("own-copy", 1, "", copy_scenario(scenario, instance))


def list_right_calls(instance: Instance) -> list[tuple[str, dict[str, Any]]]:
    values = instance.values
    if "key" in values:
        operation = {"op": "set", "path": f"/draft/{values['key']}", "value": values["value"]}
        arguments = {"workspace_id": values["workspace_id"], "request_id": "r1", "ops": [operation]}
        return [("state_get", {"workspace_id": values["workspace_id"]}), ("state_patch", arguments)]
    if "calls" in values:
        return [(call["tool"], call["arguments"]) for call in values["calls"]]
    if instance.scenario == "weather":
        return [("get_weather", {"city": values["city"]})]
    if instance.scenario == "classify_intent":
        arguments = {"workspace_id": values["workspace_id"], "confidence": 0.9, "reasoning": "by its words"}
        return [("classify_intent", arguments)]
    return []


def build_answer(instance: Instance) -> str:
    values = instance.values
    if instance.scenario == "chat_plain":
        return str(values["sum"])
    return " ".join([*values["reply"], "?"]) if "reply" in values else "Done."


def judge_trial(scenario: Scenario, instance: Instance, made: list[tuple[str, dict[str, Any]]], text: str) -> Verdict:
    """Judge a trial that makes the calls in one message and then answers, unless it has one turn."""
    workspace = scenario.open(instance)
    results = [call_tool(instance, workspace, name, arguments) for name, arguments in made]
    turns = [build_calling_turn(0, *results)] if results else []
    one_turn = instance.layer.get("max_turns") == 1 and results
    record: LoopResult = (
        build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED)
        if one_turn
        else build_ended(*turns, build_text_turn(len(turns), text))
    )
    return scenario.judge(instance, record, workspace)


def call_tool(instance: Instance, workspace: Workspace, name: str, arguments: dict[str, Any]) -> ToolResult:
    """Run a call, or refuse it for its schema."""
    tool = next(tool for tool in instance.tools if tool.name == name)
    if errors := list_schema_errors(tool, arguments):
        return build_result(name, arguments, code="ARGUMENT_ERROR", schema_errors=errors)
    return run_tool(workspace, name, arguments)


@pytest.mark.parametrize("slug", COPIED)
@pytest.mark.parametrize(("kind", "seed"), KINDS)
def test_copy_scenario_sends_the_same_request(slug: str, kind: str, seed: int) -> None:
    _, instance, copied = copy_instance(slug, kind, seed)
    same = copied.draw_instance(0)
    assert (same.system, same.user_text, same.history) == (instance.system, instance.user_text, instance.history)
    assert [describe_tool(tool) for tool in same.tools] == [
        describe_tool(tool) for tool in instance.tools if tool.exposed_to_model
    ]
    assert copied.methods == OTHER_METHODS.get(slug, scenarios.lookup_scenario(slug).methods)
    assert {**same.layer, "tool_use_mode": ""} == {**instance.layer, "tool_use_mode": ""}


def describe_tool(tool: ToolDefinition) -> tuple[Any, float | None]:
    return tool.to_openai(), tool.timeout_seconds


@pytest.mark.parametrize("slug", [slug for slug in COPIED if slug not in WITH_FAULT])
@pytest.mark.parametrize(("kind", "seed"), KINDS)
def test_copy_scenario_gets_the_same_verdict(slug: str, kind: str, seed: int) -> None:
    scenario, instance, copied = copy_instance(slug, kind, seed)
    right, text = list_right_calls(instance), build_answer(instance)
    twin = copied.draw_instance(0)
    assert judge_trial(copied, twin, right, text).outcome == "pass"
    one_argument_more = [(name, {**arguments, "unit": "C"}) for name, arguments in right]
    others = [([], "I cannot."), (right[:-1], ""), ([*right, *right], text), (one_argument_more, text)]
    for made, answer in [(right, text), *others]:
        built_in, own = judge_trial(scenario, instance, made, answer), judge_trial(copied, twin, made, answer)
        assert (own.outcome, own.behaviour_seen, own.avoided) == (
            built_in.outcome, built_in.behaviour_seen, built_in.avoided,
        )  # fmt: skip


@pytest.mark.parametrize("slug", COPIED)
def test_copy_scenario_survives_json(slug: str) -> None:
    _, _, copied = copy_instance(slug, PUBLISHED_WORDING, 0)
    assert parse_case(json.loads(json.dumps(case_to_json(copied.case)))) == copied.case


def test_copy_scenario_refuses_scenarios_judged_by_a_program() -> None:
    refused = [scenario for scenario in scenarios.list_scenarios() if not is_copyable(scenario)]
    assert {scenario.group for scenario in refused} == {"agents"}
    for scenario in refused:
        with pytest.raises(ScenarioNotCopiedError, match="a program judges it"):
            copy_scenario(scenario, scenario.draw_instance(0))


def test_copy_scenario_keeps_number_and_causes_of_faults() -> None:
    scenario, instance, copied = copy_instance("recovery_busy_twice", DRAWN, 5)
    [call] = list_right_calls(instance)
    for tried, drawn in ((scenario, instance), (copied, copied.draw_instance(0))):
        workspace = tried.open(drawn)
        turns = [build_calling_turn(number, run_tool(workspace, *call)) for number in range(3)]
        assert [turn.results[0].envelope.ok for turn in turns] == [False, False, True]
        passed = build_ended(*turns, build_text_turn(3, build_answer(instance)))
        assert tried.judge(drawn, passed, workspace).outcome == "pass"
        gave_up = build_ended(*turns[:2], build_text_turn(2, "Busy."))
        assert tried.judge(drawn, gave_up, workspace).failure_class == "gave_up_after_error"
        assert tried.build_expected_calls(drawn).provoked_causes == ("tool_failed", "tool_failed")
