"""Tests that the example calls of version 1's prompt pass through the real loop in every version."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.evals.scenarios.test_seeded_draws import STATE, WITH_EXAMPLES, parse_examples
from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Ask, Execute, LoopResult, Outcome
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario, Workspace

BASE: tuple[tuple[str, JsonObject], ...] = (
    ("infrastructure", {"request_overrides": {"parallel_tool_calls": False}}),
    ("run", {"tool_use_mode": "enforced"}),
)


def build_body(message: JsonObject, finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice]}).encode()


def build_right_answers(instance: Instance) -> Iterator[bytes]:
    """Yield one answer per message of the prompt's examples; the last answer is Done."""
    for calls in parse_examples(instance):
        tool_calls = [
            {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for index, (name, arguments) in enumerate(calls)
        ]
        yield (
            build_body({"content": None, "tool_calls": tool_calls}) if tool_calls else build_body({"content": "Done."})
        )


def run_call(workspace: Workspace, name: str, arguments: JsonObject) -> Outcome:
    try:
        return Outcome(workspace.call(name, arguments, "c"))
    except ToolArgumentError as error:
        return Outcome(error_code="ARGUMENT_ERROR", error_message=str(error))


def run_trial(instance: Instance, workspace: Workspace, answers: Iterator[bytes]) -> LoopResult:
    plan = LoopPlan(
        model="any",
        policy=resolve_policy((*BASE, ("scenario", instance.layer))).policy,
        system=instance.system,
        user_text=instance.user_text,
        tools=ToolRegistry(instance.tools),
    )
    loop = run_loop(plan, lambda event: None)
    step = next(loop)
    while True:
        reply: Any
        if isinstance(step, Ask):
            step.decoder.feed(next(answers))
            reply = step.decoder.close()
        else:
            assert isinstance(step, Execute)
            reply = tuple(run_call(workspace, call.name, call.arguments) for call in step.calls)
        try:
            step = loop.send(reply)
        except StopIteration as stop:
            loop_result: LoopResult = stop.value
            return loop_result


@pytest.mark.parametrize(
    "scenario", [*STATE, *WITH_EXAMPLES], ids=lambda scenario: f"{scenario.slug}-{scenario.version}"
)
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_state_scenario_examples_of_version_1_pass_by_both_rules(scenario: Scenario, kind: str) -> None:
    instance = scenario.draw_instance(3, kind=kind)
    workspace = scenario.open(instance)
    answers = build_right_answers(scenarios.lookup_scenario(scenario.slug, 1).draw_instance(3, kind=kind))
    verdict = scenario.judge(instance, run_trial(instance, workspace, answers), workspace)
    assert (verdict.outcome, verdict.parity_pass, verdict.sentence) == ("pass", True, "")
    is_behaviour_seen = {"happy_path": None, "type_error_recovery": False}.get(scenario.slug, True)
    assert verdict.behaviour_seen is is_behaviour_seen


@pytest.mark.parametrize("slug", ["weather", "classify_intent"])
def test_single_call_scenario_passes_although_turns_are_used_up(slug: str) -> None:
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(3)
    workspace = scenario.open(instance)
    arguments = instance.values | ({"confidence": 1, "reasoning": "sure"} if slug == "classify_intent" else {})
    name = next(tool.name for tool in instance.tools if set(instance.values) <= set(tool.parameters["properties"]))
    call = {"id": "c0", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    loop_result = run_trial(
        instance, workspace, iter([build_body({"content": "", "tool_calls": [call]}, "tool_calls")])
    )
    verdict = scenario.judge(instance, loop_result, workspace)
    assert (loop_result.end, verdict.outcome) == ("MAX_TURNS_EXCEEDED", "pass")


@pytest.mark.parametrize(("slug", "offered"), [("chat_only", False), ("chat_plain", True)])
def test_control_scenario_offers_tools_only_in_chat_plain(slug: str, offered: bool) -> None:
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(3)
    workspace = scenario.open(instance)
    text = instance.values.get("sum") if slug == "chat_plain" else "Done."
    loop_result = run_trial(instance, workspace, iter([build_body({"content": text})]))
    assert loop_result.turns[0].request.has_tools is offered
    assert scenario.judge(instance, loop_result, workspace).outcome == "pass"
