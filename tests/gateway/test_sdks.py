"""Official OpenAI and Anthropic clients at the gateway: valid calls, streamed or not, or an error with a message."""

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.running import (
    MESSAGES_TOOLS,
    QUESTION,
    RESPONSES_TOOLS,
    TOOLS,
    in_database,
    make_alias,
    make_provider_at,
    make_token,
    run_gateway,
    run_simulated,
)
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.django_db(transaction=True)

# Models whose faults the gateway corrects, and models whose answers cannot be corrected; the others err at random.
CORRECTED = (
    *("perfect", "legacy-function-call", "tool-calls-object", "arguments-object", "twice-encoded", "fenced-arguments"),
    *("equal-ids", "blank-ids", "padded-names", "content-in-parts", "odd-characters", "ids-of-nine", "ids-of-kimi"),
    *("stream-no-index", "stream-index-zero", "stream-no-done", "stream-name-repeated", "stream-lines"),
)
FAILING = ("down", "key-refused", "out-of-money", "bracket-storm", "tagged-calls", "fenced-calls", "markup")
NEVER_ANSWERS = {"hangs"}


def check_arguments(arguments: Any) -> None:
    assert set(arguments) <= {"city", "unit"}
    assert isinstance(arguments["city"], str)


async def ask_openai(client: openai.AsyncOpenAI, model: str, *, stream: bool) -> str:
    arguments: Any = {"model": model, "messages": QUESTION, "tools": TOOLS}
    try:
        if stream:
            async with client.chat.completions.stream(**arguments) as events:
                answer: Any = await events.get_final_completion()
        else:
            answer = await client.chat.completions.create(**arguments)
    except openai.APIError as error:
        return f"error {getattr(error, 'code', None) or error.message}"
    message = answer.choices[0].message
    for call in message.tool_calls or ():
        check_arguments(json.loads(call.function.arguments))
    assert answer.choices[0].finish_reason == ("tool_calls" if message.tool_calls else "stop")
    return "calls" if message.tool_calls else "text"


async def ask_anthropic(client: anthropic.AsyncAnthropic, model: str, *, stream: bool) -> str:
    arguments: Any = {"model": model, "max_tokens": 500, "messages": QUESTION, "tools": MESSAGES_TOOLS}
    try:
        if stream:
            async with client.messages.stream(**arguments) as events:
                answer: Any = await events.get_final_message()
        else:
            answer = await client.messages.create(**arguments)
    except anthropic.APIError as error:
        return f"error {error.message}"
    calls = [block for block in answer.content if block.type == "tool_use"]
    for call in calls:
        check_arguments(call.input)
    assert answer.stop_reason == ("tool_use" if calls else "end_turn")
    return "calls" if calls else "text"


async def ask_responses(client: openai.AsyncOpenAI, model: str, *, stream: bool) -> str:
    arguments: Any = {"model": model, "input": "How is the weather in Berlin?", "tools": RESPONSES_TOOLS}
    try:
        if stream:
            async with client.responses.stream(**arguments) as events:
                answer: Any = await events.get_final_response()
        else:
            answer = await client.responses.create(**arguments)
    except (openai.APIError, RuntimeError) as error:  # the client's stream ends without an answer after an error
        return f"error {error}"
    calls = [item for item in answer.output if item.type == "function_call"]
    for call in calls:
        check_arguments(json.loads(call.arguments))
    assert answer.status == "completed"
    return "calls" if calls else "text"


async def ask_all() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async with run_simulated() as simulated:
        provider = await in_database(make_provider_at, simulated.url, simulated.key)
        names = [await in_database(make_alias, provider, slug) for slug in load_personas() if slug not in NEVER_ANSWERS]
        token = await in_database(make_token)
        async with (
            run_gateway(token) as gateway,
            openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=token, max_retries=0) as chat,
            anthropic.AsyncAnthropic(base_url=gateway.url, api_key=token, max_retries=0) as messages,
        ):
            for name in names:
                found[name] = [
                    await ask_openai(chat, name, stream=False),
                    await ask_openai(chat, name, stream=True),
                    await ask_anthropic(messages, name, stream=False),
                    await ask_anthropic(messages, name, stream=True),
                    await ask_responses(chat, name, stream=False),
                    await ask_responses(chat, name, stream=True),
                ]
    return found


def test_sdks_get_valid_calls_or_error_from_every_simulated_model() -> None:
    found = asyncio.run(ask_all())
    kinds = {name: {answer.partition(" ")[0] for answer in answers} for name, answers in found.items()}
    assert {name: kinds[name] for name in CORRECTED} == {name: {"calls"} for name in CORRECTED}
    assert {name: kinds[name] for name in FAILING} == {name: {"error"} for name in FAILING}
    assert found.keys() == load_personas().keys() - NEVER_ANSWERS
    assert [name for name, answers in found.items() if "error" in {answer.strip() for answer in answers}] == []
