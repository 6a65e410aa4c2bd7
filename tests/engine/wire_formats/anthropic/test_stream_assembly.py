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
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"}
TEXT = {"type": "text", "text": "Looking at it."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "state_patch", "input": {"ops": [{"op": "set", "n": 1.5}]}}
BARE = {"type": "tool_use", "id": "toolu_2", "name": "state_get", "input": {}}


def decoder(heard: Callable[[Delta], None] = lambda delta: None, *, stream: bool = True) -> AnswerDecoder:
    def read(answer: ChatAnswer) -> Turn:
        return parse_chat_turn(SETUP, answer, has_tools=True)

    return get_wire_format("anthropic").build_decoder(read, heard, is_streamed=stream)


def read_in(*chunks: bytes, stream: bool = True) -> Turn:
    reading = decoder(stream=stream)
    for chunk in chunks:
        reading.feed(chunk)
    return reading.close()


def found(turn: Turn) -> list[str]:
    return [finding.code for finding in turn.findings]


def cut_after(kind: str, whole: JsonObject, times: int = 1) -> bytes:
    """The stream until an event of this kind has come so many times."""
    made = list_events(whole)
    places = [place for place, item in enumerate(made) if item["type"] == kind]
    return b"".join(map(render_event, made[: places[times - 1] + 1]))


def test_a_listener_hears_text_thoughts_and_calls_as_they_grow() -> None:
    deltas: list[Delta] = []
    reading = decoder(deltas.append)
    reading.feed(render_stream(build_message(THOUGHT, TEXT, USE, BARE, stop="tool_use")))
    assert "".join(delta.reasoning for delta in deltas) == THOUGHT["thinking"]
    assert "".join(delta.text for delta in deltas) == TEXT["text"]
    assert json.loads("".join(delta.arguments for delta in deltas if delta.call_index == 0)) == USE["input"]
    assert [delta.call_index for delta in deltas if delta.is_closed] == [0, 1]
    assert reading.partial["content_blocks"] == [THOUGHT, TEXT, USE, BARE]


def test_a_stream_that_breaks_off_in_an_input_runs_no_call() -> None:
    turn = read_in(cut_after("content_block_delta", build_message(USE), 4))
    assert (turn.calls, turn.is_truncated, len(turn.calls_found)) == ((), True, 1)
    assert found(turn)[0] == "stream_cut"
    assert read_in(cut_after("content_block_start", build_message(BARE))).is_truncated


def test_endings_that_lack_something_are_said() -> None:
    assert found(read_in(cut_after("content_block_stop", build_message(TEXT)))) == ["stream_unfinished"]
    assert found(read_in(cut_after("message_delta", build_message(TEXT)))) == ["stream_stop_missing"]
    nothing = [
        {**event, "usage": None} for event in list_events({**build_message(TEXT), "usage": {"output_tokens": 0}})
    ]
    nothing[0]["message"]["usage"] = None
    assert found(read_in(b"".join(map(render_event, nothing)))) == ["stream_usage_missing"]


def test_an_error_after_it_began_is_an_error() -> None:
    failed = render_event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(MalformedAnswerError, match="Overloaded") as refused:
        read_in(cut_after("content_block_delta", build_message(TEXT)), failed)
    assert refused.value.code == "error_object"


@pytest.mark.parametrize("sent", [b"data: {oops\n\n", render_event({"type": "message_stop"})])
def test_events_without_an_answer_are_refused(sent: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        read_in(sent)


def test_events_and_deltas_nobody_knows_are_passed_over_or_kept() -> None:
    made = list_events(build_message(TEXT))
    made.insert(3, {"type": "weather", "degrees": 3})
    made.insert(5, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "go"}})
    made.insert(6, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "od"}})
    cited = {"type": "citations_delta", "citation": {"cited_text": "x"}}
    made.insert(7, {"type": "content_block_delta", "index": 0, "delta": cited})
    kept = read_in(b"".join(map(render_event, made))).message["content_blocks"]
    assert kept == [{**TEXT, "mood": "good", "citations": [{"cited_text": "x"}]}]


@pytest.mark.parametrize("fault", ["stream_index_missing", "stream_index_reused"])
def test_blocks_are_told_apart_without_their_indexes(fault: str) -> None:
    made = list_events(build_message(TEXT, USE, BARE, stop="tool_use"))
    for one in (item for item in made if "index" in item):
        one.pop("index")
        one.update({} if fault == "stream_index_missing" else {"index": 0})
    turn = read_in(b"".join(map(render_event, made)))
    assert turn.message["content_blocks"] == [TEXT, USE, BARE]
    assert found(turn)[0] == fault


def test_an_answer_in_one_piece_is_read_where_a_stream_was_asked_for() -> None:
    turn = read_in(json.dumps(build_message(TEXT)).encode())
    assert (turn.text, found(turn)) == (TEXT["text"], ["stream_not_streamed"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.lists(
    st.one_of(
        st.text(max_size=20).map(lambda said: {"type": "text", "text": said}),
        st.text(min_size=1, max_size=20).map(lambda said: {**THOUGHT, "thinking": said}),
        st.just({"type": "redacted_thinking", "data": "xyz"}),
        st.builds(
            lambda name, given: {"type": "tool_use", "id": "toolu_1", "name": name, "input": given},
            st.sampled_from(["state_get", "state_patch", "nobody"]),
            st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
        ),
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(BLOCKS, st.integers(1, 9), st.lists(st.integers(0, 5000), max_size=6), st.sampled_from(["end_turn", "tool_use"]))
def test_a_stream_split_anywhere_gives_the_same_turn_as_the_whole_answer(
    blocks: list[Any], size: int, places: list[int], stop: str
) -> None:
    whole = build_message(*blocks, stop=stop)
    one = read_in(json.dumps(whole).encode(), stream=False)
    assert read_in(*split_at(render_stream(whole, size), places)) == one


def test_stream_with_any_value_anywhere_is_read_or_malformed() -> None:
    made = list_events(build_message(THOUGHT, {**TEXT, "citations": []}, USE, stop="tool_use"))
    cited = {"type": "citations_delta", "citation": {"cited_text": "x"}}
    made.insert(5, {"type": "content_block_delta", "index": 1, "delta": cited})
    made.insert(-3, {"type": "content_block_delta", "index": 1, "delta": cited})
    for place, odd in product(range(len(made)), (5, -0.5, "x", True, None, [], [1], {}, {"x": [None]})):
        for path in leaves(made[place]):
            changed = [*made[:place], with_leaf(made[place], path, odd), *made[place + 1 :]]
            with suppress(MalformedAnswerError):
                read_in(b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in changed))


def leaves(value: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Yield every place within a JSON value, containers included."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from leaves(part, (*path, key))


def with_leaf(value: Any, path: JsonPath, odd: Any) -> Any:
    literal: Any = json.loads(render_with_literal(value, path, json.dumps(odd)))
    return literal
