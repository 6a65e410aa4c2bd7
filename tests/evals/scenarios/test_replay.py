"""Tests that the example calls of version 1's prompt pass through the real loop in every version."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.evals.scenarios.test_seeded_draws import SPELT_OUT, STATE, example_messages
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


def body(message: JsonObject, finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice]}).encode()


def perfect_answers(instance: Instance) -> Iterator[bytes]:
    """One answer per message of the prompt's examples; the last says Done."""
    for calls in example_messages(instance):
        tool_calls = [
            {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for place, (name, arguments) in enumerate(calls)
        ]
        yield body({"content": None, "tool_calls": tool_calls}) if tool_calls else body({"content": "Done."})


def outcome(workspace: Workspace, name: str, arguments: JsonObject) -> Outcome:
    try:
        return Outcome(workspace.call(name, arguments, "c"))
    except ToolArgumentError as error:
        return Outcome(error_code="ARGUMENT_ERROR", error_message=str(error))


def play(instance: Instance, workspace: Workspace, answers: Iterator[bytes]) -> LoopResult:
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
        sent: Any
        if isinstance(step, Ask):
            step.decoder.feed(next(answers))
            sent = step.decoder.close()
        else:
            assert isinstance(step, Execute)
            sent = tuple(outcome(workspace, call.name, call.arguments) for call in step.calls)
        try:
            step = loop.send(sent)
        except StopIteration as stop:
            loop_result: LoopResult = stop.value
            return loop_result


@pytest.mark.parametrize("scenario", [*STATE, *SPELT_OUT], ids=lambda scenario: f"{scenario.slug}-{scenario.version}")
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_the_examples_of_the_prompt_pass_by_both_rules(scenario: Scenario, kind: str) -> None:
    instance = scenario.draw_instance(3, kind=kind)
    workspace = scenario.open(instance)
    answers = perfect_answers(scenarios.lookup_scenario(scenario.slug, 1).draw_instance(3, kind=kind))
    verdict = scenario.judge(instance, play(instance, workspace, answers), workspace)
    assert (verdict.outcome, verdict.parity_pass, verdict.sentence) == ("pass", True, "")
    wanted = {"happy_path": None, "type_error_recovery": False}.get(scenario.slug, True)
    assert verdict.behaviour_seen is wanted


@pytest.mark.parametrize("slug", ["weather", "classify_intent"])
def test_one_right_call_passes_though_the_turns_are_used_up(slug: str) -> None:
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(3)
    workspace = scenario.open(instance)
    arguments = instance.values | ({"confidence": 1, "reasoning": "sure"} if slug == "classify_intent" else {})
    name = next(tool.name for tool in instance.tools if set(instance.values) <= set(tool.parameters["properties"]))
    call = {"id": "c0", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    loop_result = play(instance, workspace, iter([body({"content": "", "tool_calls": [call]}, "tool_calls")]))
    verdict = scenario.judge(instance, loop_result, workspace)
    assert (loop_result.end, verdict.outcome) == ("MAX_TURNS_EXCEEDED", "pass")


@pytest.mark.parametrize(("slug", "offered"), [("chat_only", False), ("chat_plain", True)])
def test_the_controls_offer_tools_as_they_say(slug: str, offered: bool) -> None:
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(3)
    workspace = scenario.open(instance)
    text = instance.values.get("sum") if slug == "chat_plain" else "Done."
    loop_result = play(instance, workspace, iter([body({"content": text})]))
    assert loop_result.turns[0].request.has_tools is offered
    assert scenario.judge(instance, loop_result, workspace).outcome == "pass"
