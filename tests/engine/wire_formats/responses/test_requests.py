from typing import Any

import pytest

from tests.engine.wire_formats.responses.sdk_types import parse_request
from toolbench.engine.wire_formats.responses.requests import ENCRYPTED_REASONING, encode_request

USER = {"role": "user", "content": "Read it."}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get", "description": "Gets.", "parameters": {"type": "object"}},
}


def encode(**options: Any) -> tuple[dict[str, Any], list[str]]:
    body, changes = encode_request({"model": "gpt", "messages": [USER], **options})
    return body, [change.name for change in changes]


def test_encode_request_is_not_stored_and_asks_for_encrypted_reasoning() -> None:
    body, changes = encode(messages=[{"role": "system", "content": "Be brief."}, USER], max_tokens=64.0, stream=True)
    assert (
        parse_request(body)
        == body
        == {
            "model": "gpt",
            "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": "Read it."}],
            "max_output_tokens": 64,
            "store": False,
            "include": [ENCRYPTED_REASONING],
            "stream": True,
        }
    )
    assert changes == []


def test_encode_request_with_store_sends_no_include() -> None:
    body, _ = encode(store=True)
    assert (body["store"], "include" in body) == (True, False)


def test_encode_request_keeps_include_of_the_options() -> None:
    assert encode(include=["message.output_text.logprobs"])[0]["include"] == [
        "message.output_text.logprobs",
        ENCRYPTED_REASONING,
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ({"type": "function", "function": {"name": "get"}}, {"type": "function", "name": "get"}),
        ({"type": "function", "name": "get"}, {"type": "function", "name": "get"}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}},
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get"}]},
        ),
    ],
)
def test_encode_request_renders_tool_choice_of_responses(choice: Any, sent: Any) -> None:
    body, changes = encode(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    assert (body["tool_choice"], body["parallel_tool_calls"], changes) == (sent, False, [])
    assert parse_request(body) == body


@pytest.mark.parametrize("strict", [True, False, None])
def test_encode_request_always_sends_strict_of_a_tool(strict: bool | None) -> None:
    function = TOOL["function"] | ({} if strict is None else {"strict": strict})
    (tool,) = encode(tools=[{"type": "function", "function": function}])[0]["tools"]
    assert (tool["name"], tool["strict"], tool["type"]) == ("get", bool(strict), "function")
    assert tool["parameters"] == {"type": "object", "properties": {}}


def test_encode_request_sends_tools_of_responses_unchanged() -> None:
    assert encode(tools=[{"type": "web_search"}])[0]["tools"] == [{"type": "web_search"}]


def test_encode_request_moves_response_format_and_effort() -> None:
    schema = {"name": "reply", "schema": {"type": "object"}, "strict": True}
    body, changes = encode(
        response_format={"type": "json_schema", "json_schema": schema},
        reasoning_effort="low",
        reasoning={"summary": "auto"},
        verbosity="low",
        seed=7,
        stream_options={"include_usage": True},
    )
    assert body["text"] == {"verbosity": "low", "format": {"type": "json_schema", **schema}}
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert (body["metadata"], changes) == ({"seed": "7"}, ["seed_has_no_effect"])
    assert "stream_options" not in body
    assert parse_request(body) == body


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"stop": ["x"]}, "option_left_out"),
        ({"n": 2}, "option_left_out"),
        ({"response_format": {"type": "grammar"}}, "option_left_out"),
        ({"max_completion_tokens": 4}, "token_limit_raised"),
    ],
)
def test_encode_request_changes_options_without_equivalent(options: dict[str, Any], change: str) -> None:
    body, changes = encode(**options)
    assert changes == [change]
    assert body.get("max_output_tokens", 16) == 16
    assert parse_request(body) == body


def test_encode_request_leaves_its_argument_unchanged() -> None:
    body: dict[str, Any] = {"model": "gpt", "messages": [USER], "include": ["x"], "metadata": {"a": "b"}, "seed": 1}
    before = repr(body)
    encode_request(body)
    assert repr(body) == before
