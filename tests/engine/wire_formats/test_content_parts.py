"""Tests of content in parts, as Mistral's reasoning models send it."""

import json
import random
from typing import Any

import pytest

from tests.engine.scripted_model import build_answer, build_call, build_plan, run_script
from tests.engine.streams import render_chunk, render_stream, split_at
from tests.engine.wire_formats.test_stream_reader import decode_body, decode_stream
from toolbench.engine.events import Delta, EndReason
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.content_parts import PARTS_FIELD, join_content, restore_content_parts

THINKING_PART = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
TEXT_PART = {"type": "text", "text": "It rains."}


def render_body(content: Any, calls: list[JsonObject] | None = None) -> bytes:
    root = json.loads(build_answer("", calls=calls, finish="tool_calls" if calls else "stop"))
    root["choices"][0]["message"]["content"] = content
    return json.dumps(root).encode()


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([THINKING_PART, TEXT_PART], "It rains.", "Hm."),
        ([{"type": "thinking", "thinking": "Hm."}, TEXT_PART], "It rains.", "Hm."),
        ([THINKING_PART, TEXT_PART, THINKING_PART], "It rains.", "Hm.Hm."),
        ([THINKING_PART], "", "Hm."),
    ],
)
def test_thinking_parts_become_reasoning_without_finding(content: Any, text: str, reasoning: str) -> None:
    turn = decode_body(render_body(content))

    assert (turn.text, turn.message["reasoning_content"], turn.findings) == (text, reasoning, ())


def test_parts_of_other_types_give_a_finding() -> None:
    turn = decode_body(render_body([THINKING_PART, {"type": "image_url"}, TEXT_PART]))

    assert turn.text == "It rains."
    assert [finding.code for finding in turn.findings] == ["content_not_text"]


def test_streamed_thinking_parts_equal_complete_answer() -> None:
    deltas: list[JsonObject] = [
        {"role": "assistant", "content": ""},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m."}]}]},
        {"content": [{"type": "text", "text": "It "}]},
        {"content": "rains."},
    ]
    body = render_stream(*map(render_chunk, deltas), finish="stop")
    expected = decode_body(render_body([THINKING_PART, TEXT_PART]))
    draw = random.Random(5)

    for places in [[], *([draw.randrange(len(body)) for _ in range(9)] for _ in range(20))]:
        received: list[Delta] = []
        turn = decode_stream(split_at(body, places), received)
        assert (turn.text, turn.message, turn.findings) == (expected.text, expected.message, ())
        assert "".join(delta.text for delta in received) == "It rains."
        assert "".join(delta.reasoning for delta in received) == "Hm."


def test_join_content_joins_successive_parts_of_one_type() -> None:
    image = {"type": "image_url", "image_url": "u"}
    chunks = [
        [{"type": "thinking", "thinking": "H"}, {"type": "thinking", "thinking": "m.", "signature": "s"}],
        "It ",
        [{"type": "text", "text": "rains", "index": 1}, {"type": "text", "text": "."}],
    ]

    assert join_content(chunks) == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "s"},
        {"type": "text", "text": "It rains."},
    ]
    assert join_content([[THINKING_PART], [image, image]]) == [THINKING_PART, image, image]


def test_content_parts_are_sent_back_unchanged() -> None:
    calling_answer = render_body([THINKING_PART, TEXT_PART], [build_call("state_get", "{}")])

    run = run_script(build_plan(), [calling_answer, build_answer("Done.")])

    sent = run.bodies[1]["messages"]
    message = next(message for message in sent if message["role"] == "assistant")
    assert run.ended.end is EndReason.FINAL
    assert message["content"] == [THINKING_PART, TEXT_PART]
    assert not {PARTS_FIELD, "reasoning_content"} & message.keys()


def test_reasoning_history_none_sends_only_text_of_content_parts() -> None:
    calling_answer = render_body([THINKING_PART, TEXT_PART], [build_call("state_get", "{}")])

    run = run_script(build_plan(reasoning_history="none"), [calling_answer, build_answer("Done.")])

    sent = run.bodies[1]["messages"]
    message = next(message for message in sent if message["role"] == "assistant")
    assert message["content"] == "It rains."
    assert not {PARTS_FIELD, "reasoning_content"} & message.keys()


def test_restore_content_parts_uses_changed_text() -> None:
    message = {
        "role": "assistant",
        "content": "It pours.",
        "reasoning_content": "Hm.",
        PARTS_FIELD: [THINKING_PART, TEXT_PART],
    }

    assert restore_content_parts(message) == {
        "role": "assistant",
        "content": [THINKING_PART, {"type": "text", "text": "It pours."}],
    }


def test_tool_calls_from_text_reads_text_part_beside_thinking() -> None:
    content = [THINKING_PART, {"type": "text", "text": '<tool_call>{"name": "state_get", "arguments": {}}</tool_call>'}]

    run = run_script(
        build_plan(response_transforms=["tool_calls_from_text"]), [render_body(content), build_answer("Done.")]
    )

    assert [call.name for call in run.ran] == ["state_get"]
