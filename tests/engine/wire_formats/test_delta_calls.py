"""Tests of the assembly of calls from the deltas of a stream."""

import pytest

from tests.engine.streams import build_call_delta, render_chunk, render_stream
from tests.engine.wire_formats.test_stream_reader import SETUP, decode_stream, list_calls, list_stream_codes
from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.stream_reader import StreamDecoder

AGAIN = ["stream_name_repeated"]


@pytest.mark.parametrize(
    ("deltas", "faults"),
    [
        ([build_call_delta('{"a":', name="f", id="c1"), build_call_delta("1}")], ["stream_index_missing"]),
        ([build_call_delta('{"a":', name="f", id="c1", index=0), build_call_delta("1}", name="f", index=0)], AGAIN),
        (
            [build_call_delta('{"a":', name="f", id="c1", index=0), build_call_delta("1}", name="f", id="c1", index=0)],
            AGAIN,
        ),
        ([build_call_delta('{"a":1}', name="f", id="c1", index=7)], []),
        ([build_call_delta("", name="f", id="c1", index=0), build_call_delta('{"a":1}', index=0, type="")], []),
        ([{"tool_calls": {"id": "c1", "index": 0, "function": {"name": "f", "arguments": '{"a":1}'}}}], []),
        (
            [
                build_call_delta(name="f", id="c1", index=0),
                build_call_delta('{"a":', id="c2", index=0),
                build_call_delta("1}", id="c3", index=0),
                build_call_delta("", id="c4", index=0),
            ],
            ["stream_id_changed"],
        ),
        (
            [build_call_delta('{"a":', name="f", id="c1"), build_call_delta("1}", id="c2")],
            ["stream_index_missing", "stream_id_changed"],
        ),
    ],
    ids=[
        "no index",
        "name again",
        "name and id again",
        "complete in one delta",
        "blank type",
        "an object",
        "a new id with each part",
        "a new id and no index",
    ],
)
def test_stream_decoder_joins_deltas_of_one_call(deltas: list[JsonObject], faults: list[str]) -> None:
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert list_calls(turn) == [("c1", "f", '{"a":1}')]
    assert list_stream_codes(turn) == faults


@pytest.mark.parametrize(
    ("deltas", "fault"),
    [
        (
            [build_call_delta("{}", name="f", id="c1", index=0), build_call_delta("{}", name="g", id="c2", index=0)],
            "reused",
        ),
        (
            [
                build_call_delta("", name="f", id="c1", index=0),
                build_call_delta("{}", index=0),
                build_call_delta("", name="g", id="c2", index=0),
                build_call_delta("{}", index=0),
            ],
            "reused",
        ),
        ([build_call_delta("{}", name="f", id="c1"), build_call_delta("{}", name="g", id="c2")], "missing"),
        (
            [
                build_call_delta("", name="f", id="c1", index=0),
                build_call_delta("", name="g", id="c2", index=0),
                build_call_delta("{}", id="c1", index=0),
                build_call_delta("{}", id="c2", index=0),
            ],
            "reused",
        ),
    ],
    ids=["index always 0", "index always 0, in several deltas", "no index", "index always 0, ids in turn"],
)
def test_stream_decoder_begins_a_call_at_a_new_id(deltas: list[JsonObject], fault: str) -> None:
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert list_calls(turn) == [("c1", "f", "{}"), ("c2", "g", "{}")]
    assert list_stream_codes(turn) == [f"stream_index_{fault}"]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
@pytest.mark.parametrize("name", ["f", "g"])
@pytest.mark.parametrize("is_name_apart", [True, False])
def test_stream_decoder_begins_a_call_after_an_id_alone(index: JsonObject, name: str, is_name_apart: bool) -> None:
    deltas = [
        build_call_delta("{}", name="f", id="c1", **index),
        build_call_delta("", id="c2", **index),
        *([build_call_delta(name=name, **index)] if is_name_apart else []),
        build_call_delta("{}", **({} if is_name_apart else {"name": name}), **index),
    ]
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert list_calls(turn) == [("c1", "f", "{}"), ("c2", name, "{}")]
    assert list_stream_codes(turn) == [f"stream_index_{'reused' if index else 'missing'}"]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
@pytest.mark.parametrize("arguments", ['{"x":1}', {"x": 1}])
def test_stream_decoder_keeps_complete_call_before_a_nameless_one(index: JsonObject, arguments: object) -> None:
    deltas = [build_call_delta("{}", name="f", id="c1", **index), build_call_delta(arguments, id="c2", **index)]
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert list_calls(turn) == [("c1", "f", "{}"), ("c2", "", arguments)]


def test_stream_decoder_separates_parallel_calls_with_one_id_by_index() -> None:
    deltas = [
        build_call_delta(arguments, id="x", index=index, **({} if name is None else {"name": name}))
        for arguments, index, name in (('{"a":', 0, "f"), ('{"b":', 1, "g"), ("1}", 0, None), ("2}", 1, None))
    ]
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", '{"a":1}'), ("g", '{"b":2}')]
    assert list_stream_codes(turn) == []


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_stream_decoder_separates_calls_without_ids_by_complete_arguments(index: JsonObject) -> None:
    deltas = [build_call_delta(f'{{"n":{n}}}', name="f", **index, id="") for n in (1, 2)]
    assert [call.arguments for call in decode_stream([render_stream(*map(render_chunk, deltas))]).calls] == [
        '{"n":1}',
        '{"n":2}',
    ]


@pytest.mark.parametrize("call_id", ["", 7, 0])
def test_stream_decoder_keeps_id_of_other_type(call_id: str | int) -> None:
    decoder = StreamDecoder(lambda answer: parse_chat_turn(SETUP, answer, has_tools=True))
    decoder.feed(
        render_chunk(build_call_delta("{", name="f", id=call_id, index=0))
        + render_chunk(build_call_delta("}", id="", index=0))
    )
    assert [item["id"] for item in decoder.partial["tool_calls"]] == [call_id]


def test_stream_decoder_orders_calls_by_index() -> None:
    deltas = [build_call_delta("{}", name=f"f{n}", id=f"c{n}", index=n) for n in (1, 0)]
    assert [call.id for call in decode_stream([render_stream(*map(render_chunk, deltas))]).calls] == ["c0", "c1"]


def test_stream_decoder_keeps_object_arguments() -> None:
    turn = decode_stream([render_stream(render_chunk(build_call_delta({"a": 1}, name="f", id="c1", index=0)))])
    assert turn.calls[0].arguments == {"a": 1}
