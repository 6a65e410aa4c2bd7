"""Bad request bodies in every dialect: the dialect's error with a message, and no request to the provider."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    MESSAGES_TOOLS,
    QUESTION,
    RESPONSES_TOOLS,
    TOOLS,
    chat_body,
    messages_body,
    post,
    run,
    scripted_gateway,
)
from toolbench.gateway.request import MAX_BODY_BYTES, MAX_TOOLS
from toolbench.providers.scripted_server import text_reply

pytestmark = pytest.mark.django_db(transaction=True)
RESPONSES = "/v1/responses"
IMAGE_URL = "data:image/png;base64,iVBORw0KGgo="


def responses_body(**more: Any) -> dict[str, Any]:
    return {"model": "weather", "input": "How is the weather in Berlin?", "tools": RESPONSES_TOOLS, **more}


def chat_tool(**function: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "f", **function}}]


def chat_messages(*messages: Any) -> dict[str, Any]:
    return chat_body(messages=list(messages))


def user_blocks(*blocks: Any) -> dict[str, Any]:
    return messages_body(messages=[{"role": "user", "content": list(blocks)}])


def input_items(*items: Any) -> dict[str, Any]:
    return responses_body(input=list(items))


CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_CALLER = {"role": "assistant", "tool_calls": [CHAT_CALL]}
MESSAGES_CALLER = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
CALL_ITEM = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT_ITEM = {"type": "function_call_output", "call_id": "c", "output": "x"}

# Bodies by their error, each with a part of the message.
BAD_JSON: dict[str, tuple[Any, str]] = {
    "cut": (b'{"model": "weather", "messages": [{"role": "us', "not JSON"),
    "empty": (b"", "not JSON"),
    "no UTF-8": (b'{"model": "\xff"}', "not JSON"),
    "list": (b"[]", "not a JSON object"),
    "deep": (b"[" * 100_000, "not JSON"),
    "NaN": (b'{"model": "weather", "temperature": NaN}', "not JSON"),
}
BAD_CHAT: dict[str, tuple[Any, str]] = {
    "empty object": ({}, "messages is missing"),
    "alias is no text": (chat_body(model=7), "name of an alias"),
    "unknown field": (chat_body(surprise=1), "no field surprise"),
    "unknown field of a message": (chat_messages({**QUESTION[0], "surprise": 1}), "Message 0 has the field surprise"),
    "unknown field of a tool": (chat_body(tools=chat_tool(surprise=1)), "Tool f has the field surprise"),
    "unknown field of a call": (
        chat_messages(*QUESTION, {**CHAT_CALLER, "tool_calls": [{**CHAT_CALL, "surprise": 1}]}),
        "A tool call of message 1 has the field surprise",
    ),
    "two answers": (chat_body(n=2), "one answer"),
    "stream is no flag": (chat_body(stream="yes"), "true or false"),
    "stream_options is no object": (chat_body(stream=True, stream_options=1), "not an object"),
    "unknown stream option": (chat_body(stream_options={"surprise": True}), "stream_options has the field surprise"),
    "temperature is no number": (chat_body(temperature="hot"), "temperature is not a number"),
    "max_tokens is zero": (chat_body(max_tokens=0), "at least 1"),
    "seed is a fraction": (chat_body(seed=0.5), "seed is not a whole number"),
    "stop is a number": (chat_body(stop=[7]), "stop is not a text or a list of texts"),
    "response_format is a text": (chat_body(response_format="json"), "response_format is not an object"),
    "no messages": (chat_body(messages=[]), "at least one message"),
    "messages is an object": (chat_body(messages={}), "messages is missing"),
    "message is a text": (chat_messages("Hi"), "no known role"),
    "wrong role": (chat_messages({"role": "robot", "content": "x"}), "no known role"),
    "content is a number": (chat_messages({"role": "user", "content": 7}), "no images"),
    "content is false": (chat_messages({"role": "user", "content": False}), "no images"),
    "content is an empty object": (chat_messages({"role": "user", "content": {}}), "no images"),
    "image": (
        chat_messages({"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE_URL}}]}),
        "no images",
    ),
    "last message of the assistant": (chat_messages({"role": "assistant", "content": "x"}), "ends with the assistant"),
    "last message of the system": (
        chat_messages(*QUESTION, {"role": "developer", "content": "x"}),
        "ends with the system's message",
    ),
    "result without a call": (
        chat_messages(*QUESTION, {"role": "tool", "tool_call_id": "c", "content": "{}"}),
        "result of a call",
    ),
    "second result of a call": (
        chat_messages(*QUESTION, CHAT_CALLER, *[{"role": "tool", "tool_call_id": "c", "content": "{}"}] * 2),
        "has a result already",
    ),
    "result without an id": (chat_messages(*QUESTION, CHAT_CALLER, {"role": "tool", "content": "x"}), "tool_call_id"),
    "call without a result": (chat_messages(*QUESTION, CHAT_CALLER, *QUESTION), "results of these calls are missing"),
    "call without a result before another answer": (
        chat_messages(*QUESTION, CHAT_CALLER, {"role": "assistant", "content": "x"}, *QUESTION),
        "Before message 2, results of these calls are missing: c. Send",
    ),
    "call without a name": (
        chat_messages(*QUESTION, {"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}),
        "lacks id, function.name",
    ),
    "schema of an unknown type": (chat_body(tools=chat_tool(parameters={"type": "oops"})), "Tool f"),
    "schema is a list": (chat_body(tools=chat_tool(parameters=[])), "not a JSON Schema"),
    "description is a number": (chat_body(tools=chat_tool(description=7)), "description is not a text"),
    "strict is a text": (chat_body(tools=chat_tool(strict="yes")), "strict is not true or false"),
    "tools is an object": (chat_body(tools={}), "tools cannot be read"),
    "built-in tool of the vendor": (chat_body(tools=[{"type": "web_search"}]), "tools cannot be read"),
    "two tools of one name": (chat_body(tools=TOOLS * 2), "same name"),
    "129 tools": (chat_body(tools=[tool for at in range(129) for tool in chat_tool(name=f"f{at}")]), "at most 128"),
    "choice of another tool": (
        chat_body(tool_choice={"type": "function", "function": {"name": "other"}}),
        "tool_choice is unknown",
    ),
    "choice of a list": (chat_body(tool_choice={"function": {"name": ["get_weather"]}}), "tool_choice is unknown"),
    "choice without tools": (chat_body(tools=None, tool_choice="required"), "there are no tools"),
}
BAD_MESSAGES: dict[str, tuple[Any, str]] = {
    "empty object": ({}, "max_tokens is required"),
    "no max_tokens": (messages_body(max_tokens=None), "max_tokens is required"),
    "max_tokens is a flag": (messages_body(max_tokens=True), "max_tokens is not a whole number"),
    "alias is no text": (messages_body(model=7), "name of an alias"),
    "unknown field": (messages_body(surprise=1), "no field surprise"),
    "unknown field of a message": (
        messages_body(messages=[{**QUESTION[0], "surprise": 1}]),
        "Message 0 has the field surprise",
    ),
    "unknown field of a tool": (
        messages_body(tools=[{**MESSAGES_TOOLS[0], "surprise": 1}]),
        "Tool get_weather has the field surprise",
    ),
    "unknown metadata": (messages_body(metadata={"surprise": 1}), "metadata has the field surprise"),
    "other service_tier": (messages_body(service_tier="standard_only"), "service_tier has a value"),
    "temperature is no number": (messages_body(temperature="hot"), "temperature is not a number"),
    "stop_sequences is a number": (messages_body(stop_sequences=7), "stop_sequences is not a text"),
    "no messages": (messages_body(messages=[]), "at least one message"),
    "wrong role": (messages_body(messages=[{"role": "system", "content": "x"}]), "no known role"),
    "content is missing": (messages_body(messages=[{"role": "user"}]), "content is missing"),
    "system is zero": (messages_body(system=0), "system has a part that is not text"),
    "image": (
        user_blocks({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}),
        "no images",
    ),
    "last message of the assistant": (
        messages_body(messages=[*QUESTION, {"role": "assistant", "content": "x"}]),
        "ends with the assistant",
    ),
    "result without a call": (user_blocks(RESULT_BLOCK), "result of a call"),
    "result without an id": (user_blocks({"type": "tool_result"}), "lacks its tool_use_id"),
    "failure is a text": (
        messages_body(
            messages=[*QUESTION, MESSAGES_CALLER, {"role": "user", "content": [{**RESULT_BLOCK, "is_error": "yes"}]}]
        ),
        "is_error has another value",
    ),
    "call without a result": (
        messages_body(messages=[*QUESTION, MESSAGES_CALLER, *QUESTION]),
        "results of these calls are missing",
    ),
    "call without a name": (
        messages_body(messages=[*QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": "c"}]}]),
        "lacks its id or name",
    ),
    "schema of an unknown type": (messages_body(tools=[{"name": "f", "input_schema": {"type": "oops"}}]), "Tool f"),
    "schema is a list": (messages_body(tools=[{"name": "f", "input_schema": []}]), "not a JSON Schema"),
    "built-in tool of the vendor": (
        messages_body(tools=[{"type": "bash_20250124", "name": "bash"}]),
        "tools cannot be read",
    ),
    "two tools of one name": (messages_body(tools=MESSAGES_TOOLS * 2), "same name"),
    "129 tools": (
        messages_body(tools=[{"name": f"f{at}", "input_schema": {"type": "object"}} for at in range(129)]),
        "at most 128",
    ),
    "choice of another tool": (messages_body(tool_choice={"type": "tool", "name": "other"}), "tool_choice is unknown"),
    "choice of a list": (messages_body(tool_choice={"type": ["any"]}), "tool_choice is unknown"),
    "choice with a flag that is a text": (
        messages_body(tool_choice={"type": "auto", "disable_parallel_tool_use": "yes"}),
        "disable_parallel_tool_use has another value",
    ),
    "choice without tools": (messages_body(tool_choice={"type": "any"}, tools=None), "there are no tools"),
}
BAD_RESPONSES: dict[str, tuple[Any, str]] = {
    "empty object": ({}, "model is missing"),
    "alias is no text": (responses_body(model=7), "name of an alias"),
    "no input": ({"model": "weather"}, "input is missing"),
    "stored answer": (responses_body(previous_response_id="resp_1"), "stores no answers"),
    "answer to store": (responses_body(store=True), "stores no answers"),
    "truncation": (responses_body(truncation="auto"), "sends the whole input"),
    "include": (responses_body(include=["message.output_text.logprobs"]), "include has a value"),
    "metadata is a text": (responses_body(metadata="x"), "metadata is not an object"),
    "unknown field": (responses_body(background=True), "no field background"),
    "unknown field of a tool": (
        responses_body(tools=[{**RESPONSES_TOOLS[0], "surprise": 1}]),
        "Tool get_weather has the field surprise",
    ),
    "text is a number": (responses_body(text=3), "text is not an object"),
    "text of an unknown format": (responses_body(text={"format": {"type": "xml"}}), "text.format is unknown"),
    "summary of reasoning": (responses_body(reasoning={"summary": "auto"}), "reasoning has the field summary"),
    "temperature is no number": (responses_body(temperature="hot"), "temperature is not a number"),
    "item of an unknown type": (input_items({"type": "item_reference", "id": "x"}), "Item 0 has an unknown type"),
    "wrong role": (input_items({"role": "robot", "content": "x"}), "no known role"),
    "image": (
        input_items({"role": "user", "content": [{"type": "input_image", "image_url": IMAGE_URL}]}),
        "no images",
    ),
    "last message of the assistant": (input_items({"role": "assistant", "content": "x"}), "ends with the assistant"),
    "result without a call": (input_items(RESULT_ITEM), "result of a call"),
    "result without an id": (input_items({"type": "function_call_output"}), "lacks its call_id"),
    "call without a result": (input_items(*QUESTION, CALL_ITEM, *QUESTION), "results of these calls are missing"),
    "call without a name": (input_items(*QUESTION, {"type": "function_call", "call_id": "c"}), "lacks call_id, name"),
    "schema of an unknown type": (
        responses_body(tools=[{"type": "function", "name": "f", "parameters": {"type": "oops"}}]),
        "Tool f",
    ),
    "schema is a list": (
        responses_body(tools=[{"type": "function", "name": "f", "parameters": []}]),
        "not a JSON Schema",
    ),
    "built-in tool of the vendor": (responses_body(tools=[{"type": "web_search"}]), "without OpenAI's own tools"),
    "two tools of one name": (responses_body(tools=RESPONSES_TOOLS * 2), "same name"),
    "129 tools": (responses_body(tools=[{"type": "function", "name": f"f{at}"} for at in range(129)]), "at most 128"),
    "choice of another tool": (
        responses_body(tool_choice={"type": "function", "name": "other"}),
        "tool_choice is unknown",
    ),
    "choice without tools": (responses_body(tools=None, tool_choice="required"), "there are no tools"),
}


def check_openai_error(answer: Any) -> None:
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["type"] == "invalid_request_error"


def check_messages_error(answer: Any) -> None:
    assert answer["type"] == "error"
    assert answer["error"]["type"] in ("invalid_request_error", "not_found_error", "request_too_large")


DIALECTS: dict[str, tuple[dict[str, tuple[Any, str]], Callable[[Any], None], dict[str, Any]]] = {
    CHAT: (BAD_CHAT, check_openai_error, chat_body()),
    MESSAGES: (BAD_MESSAGES, check_messages_error, messages_body()),
    RESPONSES: (BAD_RESPONSES, check_openai_error, responses_body()),
}


@pytest.mark.parametrize("path", DIALECTS)
def test_gateway_bad_body_returns_dialect_error_and_sends_nothing(path: str) -> None:
    bad_bodies, check_error, _ = DIALECTS[path]

    async def body() -> None:
        async with scripted_gateway() as (gateway, upstream):
            for name, (sent, sentence) in (BAD_JSON | bad_bodies).items():
                status, answer, _ = await post(gateway, sent, path)
                assert (status, sentence in answer["error"]["message"]) == (400, True), (name, answer)
                check_error(answer)
            assert upstream.seen == []

    run(body)


@pytest.mark.parametrize("path", DIALECTS)
def test_gateway_refuses_body_without_the_named_coding(path: str) -> None:
    _, check_error, _ = DIALECTS[path]

    async def body() -> None:
        async with scripted_gateway() as (gateway, _):
            status, answer, _ = await post(gateway, b"no gzip", path, **{"content-encoding": "gzip"})
            message = "The body does not match its Content-Encoding or Transfer-Encoding header. "
            assert (status, answer["error"]["message"].startswith(message)) == (400, True)
            check_error(answer)

    run(body)


@pytest.mark.parametrize("path", DIALECTS)
def test_gateway_refuses_body_over_16_mib_and_unknown_alias(path: str) -> None:
    _, check_error, good_body = DIALECTS[path]

    async def body() -> None:
        async with scripted_gateway() as (gateway, upstream):
            async with gateway.session.post(path, data=io.BytesIO(b"a" * (MAX_BODY_BYTES + 1))) as response:
                status, answer = response.status, await response.json()
            assert (status, "16,777,216 bytes" in answer["error"]["message"]) == (413, True)
            check_error(answer)
            status, answer, _ = await post(gateway, {**good_body, "model": "other"}, path)
            assert (status, "no alias other" in answer["error"]["message"]) == (404, True)
            check_error(answer)
            assert upstream.seen == []

    run(body)


def list_good_tools(path: str) -> list[Any]:
    names = [f"f{number}" for number in range(MAX_TOOLS)]
    if path == CHAT:
        return [tool for name in names for tool in chat_tool(name=name, strict=True)]
    if path == MESSAGES:
        return [{"name": name, "input_schema": {"type": "object"}, "cache_control": {"type": "e"}} for name in names]
    return [{"type": "function", "name": name, "strict": None} for name in names]


@pytest.mark.parametrize("path", DIALECTS)
def test_gateway_answers_128_tools_and_body_of_15_mib(path: str) -> None:
    async def body() -> None:
        async with scripted_gateway(text_reply("Hi")) as (gateway, upstream):
            good_body = {**DIALECTS[path][2], "tools": list_good_tools(path)}
            text = "a" * (15 << 20)
            field = "input" if path == RESPONSES else "messages"
            status, answer, _ = await post(gateway, {**good_body, field: [{"role": "user", "content": text}]}, path)
            assert status == 200, answer
            (request,) = upstream.seen
            assert len(request.json()["tools"]) == MAX_TOOLS
            assert request.json()["messages"][-1]["content"] == text

    run(body)


def test_gateway_passes_known_fields_to_provider_and_answer() -> None:
    async def body() -> None:
        async with scripted_gateway(*[text_reply("Hi")] * 3) as (gateway, upstream):
            await post(gateway, chat_body(store=True, metadata={"a": "b"}, user="ann", seed=7, stop=["x"]))
            _, answer, _ = await post(gateway, responses_body(metadata={"a": "b"}, max_output_tokens=9), RESPONSES)
            assert answer["metadata"] == {"a": "b"}
            result = {"role": "user", "content": [{**RESULT_BLOCK, "is_error": True}]}
            await post(
                gateway,
                messages_body(messages=[*QUESTION, MESSAGES_CALLER, result], metadata={"user_id": "ann"}),
                MESSAGES,
            )
            chat, responses, messages = (request.json() for request in upstream.seen)
            assert (chat["store"], chat["metadata"], chat["user"], chat["seed"]) == (True, {"a": "b"}, "ann", 7)
            assert chat["stop"] == ["x"]
            assert responses["max_tokens"] == 9
            assert (messages["user"], messages["messages"][-1]["content"]) == ("ann", "Error: x")

    run(body)
