"""Requests over HTTP whose answers are read by Toolbench and by the SDKs of OpenAI and Anthropic."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.providers.simulated.state_tasks import STATE_TOOLS, build_state_request
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.engine.wire_formats.responses.answers import INCOMPLETE_REASONS
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.simulated.personas import Persona
from toolbench.providers.simulated.seeded_random import build_random
from toolbench.providers.simulated.server import SimulatedServer

REFUSED_ANSWER = "refused"
STATE_GET_CALL = {"id": "call_1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}
READ_RESULT = json.dumps({"ok": True, "tool_name": "state_get", "data": {}})
WRITE_RESULT = json.dumps({"ok": True, "tool_name": "state_patch", "data": {}})


@dataclass(frozen=True)
class AnswerContent:
    """Content of an answer, in the same form for every reader."""

    text: str
    calls: tuple[tuple[Any, Any, Any], ...]  # id, name, arguments
    finish: Any
    tokens: tuple[Any, Any]  # None, None if the answer has no usage


def iter_requests(persona: Persona) -> Iterator[JsonObject]:
    """Yield a state task before its last call and before its final text, and from its beginning if the persona's fault
    occurs only there; with a seed under which the fault occurs."""
    seed = next(
        seed for seed in range(1000) if build_random(seed, persona.slug, "drift").random() < (persona.rate or 1)
    )
    body = build_state_request(persona.slug, seed)
    patch = {**STATE_GET_CALL, "id": "call_2", "function": {"name": "state_patch", "arguments": "{}"}}
    later = (((STATE_GET_CALL, READ_RESULT),), ((STATE_GET_CALL, READ_RESULT), (patch, WRITE_RESULT)))
    for done in ((), *later) if persona.places == ("first",) else later:
        messages = list(body["messages"])
        for call, result in done:
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        yield {**body, "messages": messages, "tools": STATE_TOOLS}


async def read_with_toolbench(
    server: SimulatedServer, client: HttpClient, body: JsonObject, wire: str
) -> AnswerContent | str:
    received: list[ChatAnswer] = []

    def read(answer: ChatAnswer) -> Turn:
        received.append(answer)
        return Turn(answer.message, "")

    wire_format = get_wire_format(wire)
    endpoint = Endpoint(server.url, body["model"], key=server.key, wire=wire)
    exchange = client.build_exchange(endpoint, wire_format.path, json.dumps(body).encode())
    await client.send(exchange)
    decoder = wire_format.build_decoder(read, lambda delta: None, is_streamed=bool(body.get("stream")))
    decoder.feed(exchange.body)
    try:
        decoder.close()
    except MalformedAnswerError:
        return REFUSED_ANSWER
    return _read_content(received[0]) if exchange.find_error() is None else REFUSED_ANSWER


def _read_content(answer: ChatAnswer) -> AnswerContent:
    message, usage = answer.message, answer.usage
    raw_calls = message.get("tool_calls") or ()
    calls = [raw_calls] if isinstance(raw_calls, dict) else raw_calls
    return AnswerContent(
        message["content"],
        tuple(
            (call.get("id"), call["function"]["name"], _parse_arguments(call["function"].get("arguments")))
            for call in calls
        ),
        answer.finish_reason,
        (usage.input_tokens, usage.output_tokens) if usage else (None, None),
    )


def _parse_arguments(arguments: Any) -> Any:
    """Return arguments as a value; text that is no JSON stays text."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


async def read_with_openai(client: openai.AsyncOpenAI, body: JsonObject) -> AnswerContent | str:
    """Read an answer with OpenAI's SDK, streams with its accumulator; return the name of an exception."""
    try:
        if not body.get("stream"):
            completion: Any = await client.chat.completions.create(**body)
        else:
            state: Any = ChatCompletionStreamState()
            stream: Any = await client.chat.completions.create(**body)
            async for chunk in stream:
                state.handle_chunk(chunk)
            completion = state.get_final_completion()
        choice, usage = completion.choices[0], completion.usage
        calls = tuple(
            (c.id, c.function.name, _parse_arguments(c.function.arguments)) for c in choice.message.tool_calls or ()
        )
    except Exception as error:
        return type(error).__name__
    tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    return AnswerContent(choice.message.content or "", calls, choice.finish_reason, tokens)


async def read_with_openai_responses(client: openai.AsyncOpenAI, body: JsonObject) -> AnswerContent | str:
    """Read Responses with OpenAI's SDK, streams with its accumulator; an incomplete response is in the last event."""
    arguments = {name: value for name, value in body.items() if name != "stream"}
    try:
        if not body.get("stream"):
            response: Any = await client.responses.create(**arguments)
        else:
            async with client.responses.stream(**arguments) as stream:
                last: Any = None
                async for event in stream:
                    last = event
                is_incomplete = last.type == "response.incomplete"
                response = last.response if is_incomplete else await stream.get_final_response()
        if response.error:
            return str(response.error.code)
        calls = tuple(
            (item.call_id, item.name, _parse_arguments(item.arguments))
            for item in response.output
            if item.type == "function_call"
        )
        reason = response.incomplete_details.reason if response.incomplete_details else None
        usage, text = response.usage, response.output_text
    except Exception as error:
        return type(error).__name__
    tokens = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    finish = INCOMPLETE_REASONS.get(reason, reason) if reason else "tool_calls" if calls else "stop"
    return AnswerContent(text, calls, finish, tokens)


async def read_with_anthropic(client: anthropic.AsyncAnthropic, body: JsonObject) -> AnswerContent | str:
    """Read an answer with Anthropic's SDK; return the name of an exception."""
    arguments = {name: value for name, value in body.items() if name != "stream"}
    try:
        if not body.get("stream"):
            message: Any = await client.messages.create(**arguments)
        else:
            async with client.messages.stream(**arguments) as stream:
                message = await stream.get_final_message()
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = tuple((b.id, b.name, b.input) for b in message.content if b.type == "tool_use")
        usage = message.usage
    except Exception as error:
        return type(error).__name__
    tokens = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    return AnswerContent(text, calls, message.stop_reason, tokens)
