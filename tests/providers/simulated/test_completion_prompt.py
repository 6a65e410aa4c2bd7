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
CONVERSATION = (
    PromptMessage("system", "Be brief."),
    PromptMessage("user", "What is the weather in Rome?"),
    PromptMessage("assistant", "", calls=(CALL,)),
    PromptMessage("result", '{"ok": true, "tool_name": "get_weather"}', calls=(CALL,)),
    PromptMessage("assistant", "Sunny."),
    PromptMessage("user", "What is the weather in Oslo?"),
)
FORMATS = ("hermes", "qwen3_coder", "lfm2", "olmo3", "seed_oss", "pythonic", "llama4", "minimax_m2")


def complete(prompt: object, **more: Any) -> JsonObject:
    request = {"model": "perfect", "prompt": prompt, "seed": 1, **more}
    answer = build_answer(request, load_personas()["perfect"], RefusedTurns(), COMPLETIONS)
    body: JsonObject = json.loads(answer.reply.body)
    return body


@pytest.mark.parametrize("name", FORMATS)
def test_parse_prompt_reads_turns_tools_and_format(name: str) -> None:
    request, text_format = parse_prompt(
        {"prompt": render_conversation(CONVERSATION, format=name, tools=[WEATHER_TOOL])}
    )
    assert (text_format, request["tools"]) == (name, [WEATHER_TOOL])
    roles = [message["role"] for message in request["messages"]]
    assert roles[:3] + roles[4:] == ["system", "user", "assistant", "assistant", "user"]
    assert roles[3] in ("user", "tool")
    assert request["messages"][-1]["content"] == "What is the weather in Oslo?"


@pytest.mark.parametrize("name", FORMATS)
def test_build_answer_writes_calls_in_the_format_of_the_prompt(name: str) -> None:
    body = complete(render_conversation(CONVERSATION, format=name, tools=[WEATHER_TOOL]))
    (call,) = parse(body["choices"][0]["text"], format=name, tools=[WEATHER_TOOL]).calls
    assert (body["object"], call.name, call.arguments) == ("text_completion", "get_weather", {"city": "Oslo"})


@pytest.mark.parametrize("prompt", ["Once upon a time", "", 5, None])
def test_build_answer_refuses_an_unreadable_prompt_with_a_sentence(prompt: object) -> None:
    assert "(simulated)" in complete(prompt)["error"]["message"]
