"""Tests of the first request of a drawn instance: it has the task, and no example except that of the method."""

import json

import pytest

from toolbench.engine.events import Ask
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.methods.instructions import build_instruction
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario
from toolbench.providers.simulated.chat_request import find_json_objects

SEEDS = range(25)
OFFERING = [scenario for scenario in scenarios.list_scenarios() if "native" in scenario.methods]
IN_TEXT = [scenario for scenario in scenarios.list_scenarios() if "text_json" in scenario.methods]


def build_first_body(instance: Instance, method: str) -> bytes:
    """Return the bytes of the first request of a trial."""
    plan = LoopPlan(
        model="any",
        policy=resolve_policy([("method", {"method": method}), ("scenario", instance.layer)]).policy,
        system=instance.system,
        user_text=instance.user_text,
        history=instance.history,
        tools=ToolRegistry(instance.tools),
        further_messages=instance.further,
    )
    step = next(run_loop(plan, lambda event: None))
    assert isinstance(step, Ask)
    return step.request.body


def join_texts(body: JsonObject) -> str:
    return "\n".join(message.get("content") or "" for message in body["messages"])


def list_tools(instance: Instance) -> list[JsonObject]:
    return [tool.to_openai() for tool in ToolRegistry(instance.tools).list_exposed()]


@pytest.mark.parametrize("scenario", OFFERING, ids=lambda scenario: scenario.slug)
def test_drawn_instance_native_request_has_no_call_as_json(scenario: Scenario) -> None:
    for seed in SEEDS:
        instance = scenario.draw_instance(seed, kind=DRAWN)
        body = json.loads(build_first_body(instance, "native"))
        text = join_texts(body)
        assert [found for _, _, found in find_json_objects(text)] == []
        assert "```" not in text
        assert "Message 1" not in text
        assert build_instruction("text_json", list_tools(instance) or [_ANY])[:40] not in text


@pytest.mark.parametrize("scenario", IN_TEXT, ids=lambda scenario: scenario.slug)
def test_drawn_instance_text_json_request_has_one_example(scenario: Scenario) -> None:
    for seed in SEEDS:
        instance = scenario.draw_instance(seed, kind=DRAWN)
        tools = list_tools(instance)
        body = json.loads(build_first_body(instance, "text_json"))
        text = join_texts(body)
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
        assert build_instruction("native", tools or [_ANY]) not in text
        if not tools or instance.layer.get("tool_use_mode") == "disabled":
            assert [found for _, _, found in find_json_objects(text)] == []
            continue
        instruction = build_instruction("text_json", tools)
        assert text.count(instruction) == 1
        examples = [found for _, _, found in find_json_objects(instruction) if "parameters" not in found]
        assert len(examples) == 1
        rest = text.replace(instruction, "")
        past_messages = [message for message in instance.history if message.get("role") in ("assistant", "tool")]
        assert past_messages or [found for _, _, found in find_json_objects(rest)] == []


@pytest.mark.parametrize("scenario", scenarios.group_scenarios()["tools"], ids=lambda scenario: scenario.slug)
def test_published_wording_request_keeps_its_examples(scenario: Scenario) -> None:
    text = join_texts(json.loads(build_first_body(scenario.draw_instance(3, kind=PUBLISHED_WORDING), "native")))
    assert len([found for _, _, found in find_json_objects(text)]) >= 2


_ANY: JsonObject = {"function": {"name": "any", "parameters": {"type": "object", "properties": {}}}}
