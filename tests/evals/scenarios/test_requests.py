"""Tests of the first request of a drawn instance: it has the task, and no example but the method's own."""

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


def first_body(instance: Instance, method: str) -> bytes:
    """The bytes of the first request of a trial."""
    plan = LoopPlan(
        model="any",
        policy=resolve_policy([("method", {"method": method}), ("scenario", instance.layer)]).policy,
        system=instance.system,
        user_text=instance.user_text,
        history=instance.history,
        tools=ToolRegistry(instance.tools),
        further_messages=instance.further,
    )
    asked = next(run_loop(plan, lambda event: None))
    assert isinstance(asked, Ask)
    return asked.request.body


def texts(body: JsonObject) -> str:
    return "\n".join(message.get("content") or "" for message in body["messages"])


def tools_of(instance: Instance) -> list[JsonObject]:
    return [tool.to_openai() for tool in ToolRegistry(instance.tools).list_exposed()]


@pytest.mark.parametrize("scenario", OFFERING, ids=lambda scenario: scenario.slug)
def test_native_request_of_drawn_instance_holds_no_call_as_json(scenario: Scenario) -> None:
    for seed in SEEDS:
        instance = scenario.draw_instance(seed, kind=DRAWN)
        body = json.loads(first_body(instance, "native"))
        told = texts(body)
        assert [found for _, _, found in find_json_objects(told)] == []
        assert "```" not in told
        assert "Message 1" not in told
        assert build_instruction("text_json", tools_of(instance) or [_ANY])[:40] not in told


@pytest.mark.parametrize("scenario", IN_TEXT, ids=lambda scenario: scenario.slug)
def test_text_json_request_of_drawn_instance_holds_one_example(scenario: Scenario) -> None:
    for seed in SEEDS:
        instance = scenario.draw_instance(seed, kind=DRAWN)
        tools = tools_of(instance)
        body = json.loads(first_body(instance, "text_json"))
        told = texts(body)
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
        assert build_instruction("native", tools or [_ANY]) not in told
        if not tools or instance.layer.get("tool_use_mode") == "disabled":
            assert [found for _, _, found in find_json_objects(told)] == []
            continue
        own = build_instruction("text_json", tools)
        assert told.count(own) == 1
        examples = [found for _, _, found in find_json_objects(own) if "parameters" not in found]
        assert len(examples) == 1
        rest = told.replace(own, "")
        past = [message for message in instance.history if message.get("role") in ("assistant", "tool")]
        assert past or [found for _, _, found in find_json_objects(rest)] == []


@pytest.mark.parametrize("scenario", scenarios.group_scenarios()["tools"], ids=lambda scenario: scenario.slug)
def test_published_wording_keeps_its_examples(scenario: Scenario) -> None:
    told = texts(json.loads(first_body(scenario.draw_instance(3, kind=PUBLISHED_WORDING), "native")))
    assert len([found for _, _, found in find_json_objects(told)]) >= 2


_ANY: JsonObject = {"function": {"name": "any", "parameters": {"type": "object", "properties": {}}}}
