import json
from typing import Any

import pytest

from tests.engine.wire_formats.anthropic.events import USAGE, build_message
from tests.engine.wire_formats.anthropic.sdk_types import parse_answer
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import JsonObject, Usage
from toolbench.engine.wire_formats.anthropic.answers import FINISH_REASONS, decode_message
from toolbench.engine.wire_formats.chat_answer import ChatAnswer

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
TEXT = {"type": "text", "text": "Well."}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"at": [1, "é"]}}


def decode(*blocks: JsonObject, **more: Any) -> ChatAnswer:
    body = build_message(*blocks, **more)
    parse_answer(body)
    return decode_message(json.dumps(body).encode())


def test_decode_message_reads_text_reasoning_and_calls_and_keeps_blocks() -> None:
    answer = decode(THINKING, TEXT, TOOL_USE, stop="tool_use")
    function = {"name": "get", "arguments": '{"at":[1,"é"]}'}
    assert answer.message == {
        "role": "assistant",
        "content": "Well.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}],
        "content_blocks": [THINKING, TEXT, TOOL_USE],
    }
    assert (answer.finish_reason, answer.model_echoed) == ("tool_calls", "claude-test")


def test_decode_message_empty_input_is_empty_object() -> None:
    assert decode({**TOOL_USE, "input": {}}).message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_decode_message_keeps_text_input_with_finding() -> None:
    answer = decode_message(json.dumps(build_message({**TOOL_USE, "input": "{oops"})).encode())
    assert answer.message["tool_calls"][0]["function"]["arguments"] == "{oops"
    assert [(finding.code, finding.path) for finding in answer.findings] == [("input_is_text", "$.content[0].input")]


@pytest.mark.parametrize(("reason", "finish"), [*FINISH_REASONS.items(), ("pause_turn", "pause_turn")])
def test_decode_message_maps_every_stop_reason(reason: str, finish: str) -> None:
    answer = decode(TEXT, stop=reason)
    assert answer.finish_reason == finish
    assert answer.is_paused is (reason == "pause_turn")


def test_decode_message_keeps_unknown_stop_reason() -> None:
    assert decode_message(json.dumps(build_message(TEXT, stop="tired")).encode()).finish_reason == "tired"


def test_decode_message_input_tokens_include_cache() -> None:
    details = {"output_tokens_details": {"thinking_tokens": 2}}
    assert decode(TEXT, usage={**USAGE, **details}).usage == Usage(17, 5, 4, 2)
    assert decode(TEXT, usage={"input_tokens": 1, "output_tokens": 2}).usage == Usage(1, 2)


def test_decode_message_keeps_unknown_fields() -> None:
    container = {"id": "c-1", "expires_at": "2026-01-01T00:00:00Z"}
    assert decode(TEXT, container=container).message["container"] == container


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error_object"),
        ({"choices": [{"message": {"content": "Hi"}}]}, "no_message"),
        ({"type": "message"}, "no_message"),
        ([], "not_object"),
    ],
)
def test_decode_message_refuses_other_bodies(body: Any, code: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        decode_message(json.dumps(body).encode())
    assert caught.value.code == code


def test_decode_message_of_chat_completion_names_the_other_wire() -> None:
    with pytest.raises(MalformedAnswerError, match="looks like a chat completion, so choose the API OpenAI"):
        decode_message(b'{"choices": []}')
