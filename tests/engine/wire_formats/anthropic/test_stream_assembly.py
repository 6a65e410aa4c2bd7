import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import TOOLS
from tests.engine.streams import split_at
from tests.engine.wire_formats.anthropic.events import build_message, list_events, render_event, render_stream
from tests.extreme_numbers import JsonPath, render_with_literal
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import AnswerDecoder, Delta
from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.registry import get_wire_format

SETUP = prepare_turns("m", resolve_policy([]).policy, system="", tools=TOOLS, options={}, seed=None)
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"}
TEXT = {"type": "text", "text": "Looking at it."}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "state_patch", "input": {"ops": [{"op": "set", "n": 1.5}]}}
TOOL_USE_WITHOUT_INPUT = {"type": "tool_use", "id": "toolu_2", "name": "state_get", "input": {}}


def build_decoder(on_delta: Callable[[Delta], None] = lambda delta: None, *, stream: bool = True) -> AnswerDecoder:
    def read(answer: ChatAnswer) -> Turn:
        return parse_chat_turn(SETUP, answer, has_tools=True)

    return get_wire_format("anthropic").build_decoder(read, on_delta, is_streamed=stream)


def decode_chunks(*chunks: bytes, stream: bool = True) -> Turn:
    decoder = build_decoder(stream=stream)
    for chunk in chunks:
        decoder.feed(chunk)
    return decoder.close()


def list_finding_codes(turn: Turn) -> list[str]:
    return [finding.code for finding in turn.findings]


def render_until(kind: str, answer: JsonObject, times: int = 1) -> bytes:
    """Return the stream up to the event of this type that comes as number `times`."""
    events = list_events(answer)
    indexes = [index for index, item in enumerate(events) if item["type"] == kind]
    return b"".join(map(render_event, events[: indexes[times - 1] + 1]))


@pytest.mark.parametrize("stream", [True, False])
def test_messages_call_cut_before_its_input_is_a_truncated_parse_error(stream: bool) -> None:
    answer = build_message(TEXT, TOOL_USE, TOOL_USE_WITHOUT_INPUT, stop="max_tokens")
    turn = decode_chunks(render_stream(answer) if stream else json.dumps(answer).encode(), stream=stream)
    assert [call.arguments for call in turn.calls][1:] == [""]
    assert [(error.call, error.truncated) for error in turn.parse_errors] == [(1, True)]


@pytest.mark.parametrize(
    "answer",
    [
        build_message(TOOL_USE_WITHOUT_INPUT, stop="tool_use"),
        build_message(TOOL_USE_WITHOUT_INPUT, TEXT, stop="max_tokens"),
    ],
)
def test_messages_call_without_input_is_read_as_empty_object(answer: JsonObject) -> None:
    turn = decode_chunks(render_stream(answer))
    assert ([call.arguments for call in turn.calls], turn.parse_errors) == (["{}"], ())


def test_messages_stream_emits_text_reasoning_and_call_deltas() -> None:
    deltas: list[Delta] = []
    decoder = build_decoder(deltas.append)
    decoder.feed(render_stream(build_message(THINKING, TEXT, TOOL_USE, TOOL_USE_WITHOUT_INPUT, stop="tool_use")))
    assert "".join(delta.reasoning for delta in deltas) == THINKING["thinking"]
    assert "".join(delta.text for delta in deltas) == TEXT["text"]
    assert json.loads("".join(delta.arguments for delta in deltas if delta.call_index == 0)) == TOOL_USE["input"]
    assert [delta.call_index for delta in deltas if delta.is_closed] == [0, 1]
    assert decoder.partial["content_blocks"] == [THINKING, TEXT, TOOL_USE, TOOL_USE_WITHOUT_INPUT]


def test_messages_stream_cut_inside_input_keeps_no_call() -> None:
    turn = decode_chunks(render_until("content_block_delta", build_message(TOOL_USE), 4))
    assert (turn.calls, turn.is_truncated, len(turn.calls_found)) == ((), True, 1)
    assert list_finding_codes(turn)[0] == "stream_cut"
    assert decode_chunks(render_until("content_block_start", build_message(TOOL_USE_WITHOUT_INPUT))).is_truncated


def test_messages_stream_endings_with_missing_parts_have_findings() -> None:
    assert list_finding_codes(decode_chunks(render_until("content_block_stop", build_message(TEXT)))) == [
        "stream_unfinished"
    ]
    assert list_finding_codes(decode_chunks(render_until("message_delta", build_message(TEXT)))) == [
        "stream_stop_missing"
    ]
    events_without_usage = [
        {**event, "usage": None} for event in list_events({**build_message(TEXT), "usage": {"output_tokens": 0}})
    ]
    events_without_usage[0]["message"]["usage"] = None
    assert list_finding_codes(decode_chunks(b"".join(map(render_event, events_without_usage)))) == [
        "stream_usage_missing"
    ]


def test_messages_stream_error_event_is_malformed_answer() -> None:
    failed = render_event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(MalformedAnswerError, match="Overloaded") as caught:
        decode_chunks(render_until("content_block_delta", build_message(TEXT)), failed)
    assert caught.value.code == "error_object"


@pytest.mark.parametrize("sent", [b"data: {oops\n\n", render_event({"type": "message_stop"})])
def test_messages_stream_without_message_is_refused(sent: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        decode_chunks(sent)


def test_messages_stream_ignores_unknown_events_and_keeps_deltas() -> None:
    events = list_events(build_message(TEXT))
    events.insert(3, {"type": "weather", "degrees": 3})
    events.insert(5, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "go"}})
    events.insert(6, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "od"}})
    citation_delta = {"type": "citations_delta", "citation": {"cited_text": "x"}}
    events.insert(7, {"type": "content_block_delta", "index": 0, "delta": citation_delta})
    blocks = decode_chunks(b"".join(map(render_event, events))).message["content_blocks"]
    assert blocks == [{**TEXT, "mood": "good", "citations": [{"cited_text": "x"}]}]


@pytest.mark.parametrize("fault", ["stream_index_missing", "stream_index_reused"])
def test_messages_stream_separates_blocks_without_usable_indexes(fault: str) -> None:
    events = list_events(build_message(TEXT, TOOL_USE, TOOL_USE_WITHOUT_INPUT, stop="tool_use"))
    for event in (item for item in events if "index" in item):
        event.pop("index")
        event.update({} if fault == "stream_index_missing" else {"index": 0})
    turn = decode_chunks(b"".join(map(render_event, events)))
    assert turn.message["content_blocks"] == [TEXT, TOOL_USE, TOOL_USE_WITHOUT_INPUT]
    assert list_finding_codes(turn)[0] == fault


def test_messages_decoder_reads_unstreamed_body_with_finding() -> None:
    turn = decode_chunks(json.dumps(build_message(TEXT)).encode())
    assert (turn.text, list_finding_codes(turn)) == (TEXT["text"], ["stream_not_streamed"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.lists(
    st.one_of(
        st.text(max_size=20).map(lambda value: {"type": "text", "text": value}),
        st.text(min_size=1, max_size=20).map(lambda value: {**THINKING, "thinking": value}),
        st.just({"type": "redacted_thinking", "data": "xyz"}),
        st.builds(
            lambda name, arguments: {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments},
            st.sampled_from(["state_get", "state_patch", "nobody"]),
            st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
        ),
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(BLOCKS, st.integers(1, 9), st.lists(st.integers(0, 5000), max_size=6), st.sampled_from(["end_turn", "tool_use"]))
def test_messages_stream_in_any_chunks_equals_complete_answer(
    blocks: list[Any], size: int, offsets: list[int], stop: str
) -> None:
    answer = build_message(*blocks, stop=stop)
    expected = decode_chunks(json.dumps(answer).encode(), stream=False)
    assert decode_chunks(*split_at(render_stream(answer, size), offsets)) == expected


def test_messages_stream_any_value_gives_turn_or_malformed_answer_error() -> None:
    events = list_events(build_message(THINKING, {**TEXT, "citations": []}, TOOL_USE, stop="tool_use"))
    citation_delta = {"type": "citations_delta", "citation": {"cited_text": "x"}}
    events.insert(5, {"type": "content_block_delta", "index": 1, "delta": citation_delta})
    events.insert(-3, {"type": "content_block_delta", "index": 1, "delta": citation_delta})
    for index, new_value in product(range(len(events)), (5, -0.5, "x", True, None, [], [1], {}, {"x": [None]})):
        for path in iterate_paths(events[index]):
            changed = [*events[:index], replace_value(events[index], path, new_value), *events[index + 1 :]]
            with suppress(MalformedAnswerError):
                decode_chunks(b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in changed))


def iterate_paths(value: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Yield the path of every value within a JSON value, containers included."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from iterate_paths(part, (*path, key))


def replace_value(value: Any, path: JsonPath, new_value: Any) -> Any:
    literal: Any = json.loads(render_with_literal(value, path, json.dumps(new_value)))
    return literal
