import json
from typing import Any

import pytest

from tests.engine.wire_formats.anthropic.events import USAGE, build_message
from tests.engine.wire_formats.anthropic.sdk_types import parse_answer
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import JsonObject, Usage
from toolbench.engine.wire_formats.anthropic.answers import FINISH_REASONS, decode_message
from toolbench.engine.wire_formats.chat_answer import ChatAnswer

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
TEXT = {"type": "text", "text": "Well."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"at": [1, "é"]}}


def decoded(*blocks: JsonObject, **more: Any) -> ChatAnswer:
    body = build_message(*blocks, **more)
    parse_answer(body)
    return decode_message(json.dumps(body).encode())


def test_blocks_become_text_thoughts_and_calls_and_stay_as_they_came() -> None:
    answer = decoded(THOUGHT, TEXT, USE, stop="tool_use")
    function = {"name": "get", "arguments": '{"at":[1,"é"]}'}
    assert answer.message == {
        "role": "assistant",
        "content": "Well.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}],
        "content_blocks": [THOUGHT, TEXT, USE],
    }
    assert (answer.finish_reason, answer.model_echoed) == ("tool_calls", "claude-test")


def test_an_empty_input_is_an_empty_object() -> None:
    assert decoded({**USE, "input": {}}).message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_an_input_that_is_a_text_is_kept_as_it_came_and_said_to_be_one() -> None:
    found = decode_message(json.dumps(build_message({**USE, "input": "{oops"})).encode())
    assert found.message["tool_calls"][0]["function"]["arguments"] == "{oops"
    assert [(finding.code, finding.path) for finding in found.findings] == [("input_is_text", "$.content[0].input")]


@pytest.mark.parametrize(("reason", "finish"), [*FINISH_REASONS.items(), ("pause_turn", "pause_turn")])
def test_every_reason_to_stop_has_its_word(reason: str, finish: str) -> None:
    answer = decoded(TEXT, stop=reason)
    assert answer.finish_reason == finish
    assert answer.is_paused is (reason == "pause_turn")


def test_a_reason_nobody_knows_is_handed_on() -> None:
    assert decode_message(json.dumps(build_message(TEXT, stop="tired")).encode()).finish_reason == "tired"


def test_the_prompt_counts_what_the_cache_gave_and_took() -> None:
    details = {"output_tokens_details": {"thinking_tokens": 2}}
    assert decoded(TEXT, usage={**USAGE, **details}).usage == Usage(17, 5, 4, 2)
    assert decoded(TEXT, usage={"input_tokens": 1, "output_tokens": 2}).usage == Usage(1, 2)


def test_what_else_an_answer_says_is_kept() -> None:
    container = {"id": "c-1", "expires_at": "2026-01-01T00:00:00Z"}
    assert decoded(TEXT, container=container).message["container"] == container


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error_object"),
        ({"choices": [{"message": {"content": "Hi"}}]}, "no_message"),
        ({"type": "message"}, "no_message"),
        ([], "not_object"),
    ],
)
def test_what_is_no_answer_is_refused(body: Any, code: str) -> None:
    with pytest.raises(MalformedAnswerError) as refused:
        decode_message(json.dumps(body).encode())
    assert refused.value.code == code


def test_a_chat_completion_is_told_to_be_on_the_wrong_wire() -> None:
    with pytest.raises(MalformedAnswerError, match="the other wire"):
        decode_message(b'{"choices": []}')
