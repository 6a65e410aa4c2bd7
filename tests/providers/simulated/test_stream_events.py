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


def build_completion(**message: object) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def decode_stream(events: Events) -> Turn:
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
def test_build_events_give_the_answer_of_the_completion(message: JsonObject) -> None:
    completion = build_completion(**message)
    turn = decode_stream(build_events(completion, random.Random(1), with_usage=True))
    whole = decode_chat_answer(json.dumps(completion).encode())
    assert (turn.message, turn.usage, turn.findings) == (whole.message, whole.usage, whole.findings)


@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        ("index_missing", "stream_index_missing"),
        ("index_always_zero", "stream_index_reused"),
        ("cut_inside_arguments", "stream_cut"),
        ("done_missing", "stream_done_missing"),
        ("usage_missing", "stream_usage_missing"),
    ],
)
def test_stream_fault_is_found_by_the_decoder(fault: str, finding: str) -> None:
    events = build_events(build_completion(content=None, tool_calls=CALLS), random.Random(1), with_usage=True)
    STREAM_FAULTS[fault](events)
    turn = decode_stream(events)
    assert finding in [finding.code for finding in turn.findings]
    assert turn.is_truncated == (fault == "cut_inside_arguments")


def test_build_events_without_usage_send_none() -> None:
    events = build_events(build_completion(content="x"), random.Random(1), with_usage=False)
    assert decode_stream(events).usage is None
