import json
from typing import Any

import pytest

from tests.engine.formats.golden_cases import WEATHER_TOOL
from toolbench.engine.formats import PromptMessage, TextCall, parse, render_conversation
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.answer import RefusedTurns, build_answer
from toolbench.providers.simulated.completion_prompt import parse_prompt
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.wire_formats import COMPLETIONS

CALL = TextCall("get_weather", {"city": "Rome"}, "c1")
TALK = (
    PromptMessage("system", "Be brief."),
    PromptMessage("user", "What is the weather in Rome?"),
    PromptMessage("assistant", "", calls=(CALL,)),
    PromptMessage("result", '{"ok": true, "tool_name": "get_weather"}', calls=(CALL,)),
    PromptMessage("assistant", "Sunny."),
    PromptMessage("user", "What is the weather in Oslo?"),
)
READ = ("hermes", "qwen3_coder", "lfm2", "olmo3", "seed_oss", "pythonic", "llama4", "minimax_m2")


def completed(prompt: object, **more: Any) -> JsonObject:
    request = {"model": "perfect", "prompt": prompt, "seed": 1, **more}
    given = build_answer(request, load_personas()["perfect"], RefusedTurns(), COMPLETIONS)
    body: JsonObject = json.loads(given.reply.body)
    return body


@pytest.mark.parametrize("name", READ)
def test_a_prompt_is_read_turn_by_turn_with_its_tools_and_its_format(name: str) -> None:
    request, found = parse_prompt({"prompt": render_conversation(TALK, format=name, tools=[WEATHER_TOOL])})
    assert (found, request["tools"]) == (name, [WEATHER_TOOL])
    roles = [message["role"] for message in request["messages"]]
    assert roles[:3] + roles[4:] == ["system", "user", "assistant", "assistant", "user"]
    assert roles[3] in ("user", "tool")
    assert request["messages"][-1]["content"] == "What is the weather in Oslo?"


@pytest.mark.parametrize("name", READ)
def test_a_persona_writes_its_calls_in_the_prompts_format(name: str) -> None:
    body = completed(render_conversation(TALK, format=name, tools=[WEATHER_TOOL]))
    (call,) = parse(body["choices"][0]["text"], format=name, tools=[WEATHER_TOOL]).calls
    assert (body["object"], call.name, call.arguments) == ("text_completion", "get_weather", {"city": "Oslo"})


@pytest.mark.parametrize("prompt", ["Once upon a time", "", 5, None])
def test_a_prompt_nobody_can_read_is_refused_with_a_sentence(prompt: object) -> None:
    assert "(simulated)" in completed(prompt)["error"]["message"]
