"""Stored requests of four wire formats in the form of chat completions."""

import json
from typing import Any

import pytest

from toolbench.lab.traces.chat_requests import parse_chat_request

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"name": "weather", "description": "Weather of a city", "parameters": PARAMETERS}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Rome?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
]
CHAT = {"model": "m", "messages": CONVERSATION, "tools": [{"type": "function", "function": TOOL}], "temperature": 0}
MESSAGES = {
    "model": "m",
    "temperature": 0,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Weather in Rome?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
    ],
    "tools": [{"name": "weather", "description": "Weather of a city", "input_schema": PARAMETERS}],
}
RESPONSES = {
    "model": "m",
    "temperature": 0,
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather in Rome?"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    ],
    "tools": [{"type": "function", **TOOL}],
}


@pytest.mark.parametrize("body", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_parse_chat_request_is_equal_for_every_wire_format(body: dict[str, Any]) -> None:
    request = parse_chat_request(json.dumps(body).encode())
    assert list(request.all_messages) == CONVERSATION
    assert list(request.tools) == [TOOL]
    assert request.options == {"model": "m", "temperature": 0}


def test_parse_chat_request_keeps_a_prompt_as_one_message() -> None:
    request = parse_chat_request(b'{"prompt": "<|user|>Hi", "max_tokens": 5}')
    assert request.messages == ({"role": "prompt", "content": "<|user|>Hi"},)
    assert (request.get_option("max_tokens"), request.get_option("top_p")) == (5, None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{",
        b"[" * 100_000,
        b'{"messages": 1, "tools": {"a": 1}}',
        b'{"messages": [1, null], "input": [2]}',
    ],
)
def test_parse_chat_request_of_unreadable_body_is_empty(body: bytes) -> None:
    request = parse_chat_request(body)
    assert (request.all_messages, request.tools) == ((), ())


def test_parse_chat_request_joins_text_parts_and_omits_images() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
    request = parse_chat_request(json.dumps({"messages": [{"role": "user", "content": parts}]}).encode())
    assert request.messages == ({"role": "user", "content": "a\nb"},)
