import json
import random

import pytest

from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import decode_chat_answer
from toolbench.engine.wire_formats.stream_reader import StreamDecoder
from toolbench.providers.simulated.stream_events import STREAM_FAULTS, Events, build_events, encode_chat_events

CALLS = [
    {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": '{"text": "some more words"}'}}
    for n in (1, 2)
]


def completion(**message: object) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def sent(events: Events) -> Turn:
    decoder = StreamDecoder(
        lambda found: Turn(
            found.message, "", usage=found.usage, findings=found.findings, is_truncated=found.is_truncated
        )
    )
    for chunk in encode_chat_events(events):
        decoder.feed(chunk)
    return decoder.close()


@pytest.mark.parametrize(
    "message",
    [
        {"content": "A longer answer\nin two lines."},
        {"content": None, "tool_calls": CALLS},
        {"content": "", "tool_calls": CALLS[0], "reasoning": "Let me think."},
        {"content": [{"type": "text", "text": "parts"}]},
        {"content": "x", "function_call": {"name": "f", "arguments": "{}"}},
        {"content": None, "tool_calls": [{**CALLS[0], "function": {"name": "f", "arguments": {"a": 1}}}]},
    ],
)
def test_a_completion_and_its_stream_say_the_same(message: JsonObject) -> None:
    given = completion(**message)
    turn = sent(build_events(given, random.Random(1), with_usage=True))
    whole = decode_chat_answer(json.dumps(given).encode())
    assert (turn.message, turn.usage, turn.findings) == (whole.message, whole.usage, whole.findings)


@pytest.mark.parametrize(
    ("drift", "finding"),
    [
        ("index_missing", "stream_index_missing"),
        ("index_always_zero", "stream_index_reused"),
        ("cut_inside_arguments", "stream_cut"),
        ("done_missing", "stream_done_missing"),
        ("usage_missing", "stream_usage_missing"),
    ],
)
def test_a_drift_of_streams_is_found(drift: str, finding: str) -> None:
    events = build_events(completion(content=None, tool_calls=CALLS), random.Random(1), with_usage=True)
    STREAM_FAULTS[drift](events)
    turn = sent(events)
    assert finding in [finding.code for finding in turn.findings]
    assert turn.is_truncated == (drift == "cut_inside_arguments")


def test_usage_is_sent_to_those_who_asked_for_it() -> None:
    events = build_events(completion(content="x"), random.Random(1), with_usage=False)
    assert sent(events).usage is None
