"""Content in parts, as Mistral's reasoning models send it."""

import json
import random
from typing import Any

import pytest

from tests.engine.scripted_model import build_answer, build_call, build_plan, run_script
from tests.engine.streams import render_chunk, render_stream, split_at
from tests.engine.wire_formats.test_stream_reader import read, whole
from toolbench.engine.events import Delta, EndReason
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.content_parts import PARTS_FIELD, restore_content_parts

HM = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
SAID = {"type": "text", "text": "It rains."}


def _body(content: Any, calls: list[JsonObject] | None = None) -> bytes:
    root = json.loads(build_answer("", calls=calls, finish="tool_calls" if calls else "stop"))
    root["choices"][0]["message"]["content"] = content
    return json.dumps(root).encode()


@pytest.mark.parametrize(
    ("content", "text", "thought"),
    [
        ([HM, SAID], "It rains.", "Hm."),
        ([{"type": "thinking", "thinking": "Hm."}, SAID], "It rains.", "Hm."),
        ([HM, SAID, HM], "It rains.", "Hm.Hm."),
        ([HM], "", "Hm."),
    ],
)
def test_thinking_parts_are_reasoning_and_no_finding(content: Any, text: str, thought: str) -> None:
    turn = whole(_body(content))

    assert (turn.text, turn.message["reasoning_content"], turn.findings) == (text, thought, ())


def test_parts_of_another_kind_stay_a_finding() -> None:
    turn = whole(_body([HM, {"type": "image_url"}, SAID]))

    assert turn.text == "It rains."
    assert [finding.code for finding in turn.findings] == ["content_not_text"]


def test_thinking_parts_in_a_stream_give_the_turn_of_the_whole_answer() -> None:
    deltas: list[JsonObject] = [
        {"role": "assistant", "content": ""},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m."}]}]},
        {"content": [{"type": "text", "text": "It "}]},
        {"content": "rains."},
    ]
    body = render_stream(*map(render_chunk, deltas), finish="stop")
    expected = whole(_body([HM, SAID]))
    draw = random.Random(5)

    for places in [[], *([draw.randrange(len(body)) for _ in range(9)] for _ in range(20))]:
        heard: list[Delta] = []
        turn = read(split_at(body, places), heard)
        assert (turn.text, turn.message, turn.findings) == (expected.text, expected.message, ())
        assert "".join(delta.text for delta in heard) == "It rains."
        assert "".join(delta.reasoning for delta in heard) == "Hm."


def test_parts_go_back_as_they_came() -> None:
    called = _body([HM, SAID], [build_call("state_get", "{}")])

    played = run_script(build_plan(), [called, build_answer("Done.")])

    sent = played.bodies[1]["messages"]
    told = next(message for message in sent if message["role"] == "assistant")
    assert played.ended.end is EndReason.FINAL
    assert told["content"] == [HM, SAID]
    assert not {PARTS_FIELD, "reasoning_content"} & told.keys()


def test_thoughts_that_are_not_to_go_back_do_not() -> None:
    called = _body([HM, SAID], [build_call("state_get", "{}")])

    played = run_script(build_plan(reasoning_history="none"), [called, build_answer("Done.")])

    sent = played.bodies[1]["messages"]
    told = next(message for message in sent if message["role"] == "assistant")
    assert told["content"] == "It rains."
    assert not {PARTS_FIELD, "reasoning_content"} & told.keys()


def test_a_text_that_was_changed_is_the_one_that_goes_back() -> None:
    message = {"role": "assistant", "content": "It pours.", "reasoning_content": "Hm.", PARTS_FIELD: [HM, SAID]}

    assert restore_content_parts(message) == {
        "role": "assistant",
        "content": [HM, {"type": "text", "text": "It pours."}],
    }


def test_a_call_in_the_text_part_is_read_beside_thinking() -> None:
    content = [HM, {"type": "text", "text": '<tool_call>{"name": "state_get", "arguments": {}}</tool_call>'}]

    played = run_script(
        build_plan(response_transforms=["tool_calls_from_text"]), [_body(content), build_answer("Done.")]
    )

    assert [call.name for call in played.ran] == ["state_get"]
