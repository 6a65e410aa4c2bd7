import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import (
    PATCH_TOOL,
    TOOLS,
    build_answer,
    build_call,
    build_calling_answer,
    build_plan,
    run_script,
)
from tests.engine.streams import build_call_delta, render_as_stream, render_chunk, render_event, render_stream, split_at
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta, EndReason
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder
from toolbench.engine.wire_formats.stream_reader import StreamDecoder

SETUP = prepare_turns("m-1", resolve_policy([]).policy, system="", tools=TOOLS, options={}, seed=None)


def read(parts: Iterable[bytes], heard: list[Delta] | None = None) -> Turn:
    decoder = StreamDecoder(
        lambda found: parse_chat_turn(SETUP, found, has_tools=True), (heard if heard is not None else []).append
    )
    for part in parts:
        decoder.feed(part)
    return decoder.close()


def whole(body: bytes) -> Turn:
    decoder = BodyDecoder(lambda found: parse_chat_turn(SETUP, found, has_tools=True))
    decoder.feed(body)
    return decoder.close()


def codes(turn: Turn) -> list[str]:
    return [finding.code for finding in turn.findings if finding.code.startswith("stream_")]


def made(turn: Turn) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in turn.calls]


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=3).map(json.dumps) | st.sampled_from(["", "{", "{}", None, "x"])
CALLS = st.lists(
    st.builds(
        lambda name, arguments, extra: {**build_call(name, arguments), **extra},
        st.sampled_from(["state_get", "state_patch", "other"]),
        ARGUMENTS | st.just({"a": 1}),
        st.sampled_from([{}, {"extra_content": {"google": {"thought_signature": "s"}}}, {"signature": "x"}]),
    ),
    max_size=3,
).map(lambda calls: [{**item, "id": f"call_{place}"} for place, item in enumerate(calls)])


@settings(deadline=None, database=None)
@given(
    TEXT | st.none(),
    CALLS,
    st.dictionaries(st.sampled_from(["reasoning_content", "refusal", "x"]), TEXT, max_size=2),
    st.integers(1, 9),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_a_streamed_answer_gives_the_same_turn_however_its_bytes_are_split(
    content: str | None, calls: list[JsonObject], fields: JsonObject, size: int, places: list[int]
) -> None:
    body = build_answer(content, calls=calls or None, finish="tool_calls" if calls else "stop", **fields)
    expected = whole(body)
    given_turn = read(split_at(render_as_stream(body, size), places))
    said = {key: value for key, value in expected.message.items() if value != "" or key == "content"}
    assert given_turn.message == said
    assert (given_turn.calls, given_turn.calls_found) == (expected.calls, expected.calls_found)
    assert (given_turn.text, given_turn.usage, given_turn.finish_reason, given_turn.findings) == (
        expected.text,
        expected.usage,
        expected.finish_reason,
        expected.findings,
    )


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
    ],
    ids=["no index", "name again", "name and id again", "whole in one delta", "blank type", "an object"],
)
def test_one_call_is_put_together(deltas: list[JsonObject], faults: list[str]) -> None:
    turn = read([render_stream(*map(render_chunk, deltas))])
    assert made(turn) == [("c1", "f", '{"a":1}')]
    assert codes(turn) == faults


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
    ],
    ids=["index always 0", "index always 0, in pieces", "no index"],
)
def test_a_new_id_is_a_new_call(deltas: list[JsonObject], fault: str) -> None:
    turn = read([render_stream(*map(render_chunk, deltas))])
    assert made(turn) == [("c1", "f", "{}"), ("c2", "g", "{}")]
    assert codes(turn) == [f"stream_index_{fault}"]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_calls_without_ids_are_told_apart_by_arguments_that_ended(index: JsonObject) -> None:
    deltas = [build_call_delta(f'{{"n":{n}}}', name="f", **index, id="") for n in (1, 2)]
    assert [call.arguments for call in read([render_stream(*map(render_chunk, deltas))]).calls] == [
        '{"n":1}',
        '{"n":2}',
    ]


@pytest.mark.parametrize("given", ["", 7, 0])
def test_an_odd_id_is_kept_as_the_whole_answer_keeps_it(given: str | int) -> None:
    decoder = StreamDecoder(lambda found: parse_chat_turn(SETUP, found, has_tools=True))
    decoder.feed(
        render_chunk(build_call_delta("{", name="f", id=given, index=0))
        + render_chunk(build_call_delta("}", id="", index=0))
    )
    assert [item["id"] for item in decoder.partial["tool_calls"]] == [given]


def test_calls_stand_in_the_order_of_their_indexes() -> None:
    deltas = [build_call_delta("{}", name=f"f{n}", id=f"c{n}", index=n) for n in (1, 0)]
    assert [call.id for call in read([render_stream(*map(render_chunk, deltas))]).calls] == ["c0", "c1"]


def test_arguments_that_come_as_an_object_stay_one_for_the_transforms() -> None:
    turn = read([render_stream(render_chunk(build_call_delta({"a": 1}, name="f", id="c1", index=0)))])
    assert turn.calls[0].arguments == {"a": 1}


def test_a_legacy_function_call_comes_in_pieces() -> None:
    name = render_chunk({"function_call": {"name": "f", "arguments": ""}})
    arguments = [render_chunk({"function_call": {"arguments": part}}) for part in ('{"', '"', ":1}")]
    deltas: list[Delta] = []
    decoder = StreamDecoder(lambda found: Turn(found.message, ""), deltas.append)
    decoder.feed(render_stream(name, *arguments, finish="function_call"))
    assert decoder.close().message["function_call"] == {"name": "f", "arguments": '{"":1}'}
    assert [(item.name, item.is_closed) for item in deltas] == [("f", False), ("f", False), ("f", False), ("f", True)]


def test_fields_nobody_knows_are_put_together_and_go_into_the_history() -> None:
    signed = build_call_delta("{}", name="f", id="c1", index=0, extra_content={"google": {"thought_signature": "s"}})
    details = [{"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": part}]} for part in ("a", "a")]
    deltas: list[JsonObject] = [{"reasoning_content": "th"}, {"reasoning_content": "ink"}, *details, signed]
    turn = read([render_stream(*map(render_chunk, deltas))])
    assert turn.message["reasoning_content"] == "think"
    assert turn.message["reasoning_details"] == [{"type": "reasoning.text", "index": 0, "text": "aa"}]
    assert turn.message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_a_signature_that_comes_behind_its_call_stays_with_it() -> None:
    late = {"tool_calls": [{"extra_content": {"google": {"thought_signature": "s"}}}]}
    turn = read([render_stream(render_chunk(build_call_delta("{}", name="f", id="c1")), render_chunk(late))])
    assert turn.message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "s"


@pytest.mark.parametrize("finish", ["", None])
def test_blank_finish_reasons_on_the_way_are_passed_over(finish: str | None) -> None:
    first = render_event({"choices": [{"delta": {"content": "a"}, "finish_reason": finish}]})
    turn = read([render_stream(first, render_chunk({"content": "b"}, finish=""), finish="stop")])
    assert (turn.text, turn.finish_reason) == ("ab", "stop")


def test_first_events_without_choices_or_model_say_nothing() -> None:
    turn = read(
        [
            render_stream(
                render_event({"choices": [], "model": ""}),
                render_event({"choices": None}),
                render_chunk({"content": "a"}),
            )
        ]
    )
    assert (turn.text, turn.model_echoed) == ("a", "m-1")


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_lines_may_end_in_any_way(ending: str) -> None:
    body = (
        render_stream(b": waiting\n\n", render_chunk({"content": "ü"}), finish="stop")
        .decode()
        .replace("\n", ending)
        .encode()
    )
    assert [read(split_at(body, range(0, len(body), n))).text for n in (1, 7, len(body))] == ["ü"] * 3


def test_events_need_neither_blank_lines_nor_the_blank_behind_the_colon() -> None:
    body = render_stream(render_chunk({"content": "a"}), render_chunk({"content": "b"}), finish="stop")
    assert read([body.replace(b"\n\n", b"\n")]).text == "ab"
    assert read([body.replace(b"data: ", b"data:")]).text == "ab"


def test_an_event_may_be_spread_over_several_lines() -> None:
    spread = b'data: {\ndata: "choices": [{"delta": {"content": "a"}}]\ndata: }\n\n'
    assert read([render_stream(spread, finish="stop")]).text == "a"


@pytest.mark.parametrize("before", [b"", b"\n ", b"\xef\xbb\xbf\n"], ids=["", "blank", "byte order mark"])
def test_an_answer_that_came_in_one_piece_is_read_and_said_to_be_one(before: bytes) -> None:
    turn = read([bytes([byte]) for byte in before + build_answer("Hi.")])
    assert (turn.text, codes(turn)) == ("Hi.", ["stream_not_streamed"])


def test_a_stream_without_done_is_read_and_noted() -> None:
    turn = read([render_stream(render_chunk(build_call_delta("{}", name="f", id="c1", index=0)), done=False)])
    assert (len(turn.calls), codes(turn)) == (1, ["stream_done_missing"])


def test_a_whole_call_counts_where_nothing_says_that_the_stream_is_over() -> None:
    turn = read(
        [render_stream(render_chunk(build_call_delta("{}", name="f", id="c1", index=0)), finish="", done=False)]
    )
    assert (len(turn.calls), turn.is_truncated, codes(turn)) == (1, False, ["stream_unfinished"])


def test_missing_usage_is_noted() -> None:
    turn = read([render_stream(render_chunk({"content": "a"}), finish="stop", usage=False)])
    assert (turn.usage, codes(turn)) == (None, ["stream_usage_missing"])


@pytest.mark.parametrize("tail", [b"", b'data: {"choices": [{"del'])
@pytest.mark.parametrize("arguments", ['{"a":', '{"a": "b', ""])
def test_no_call_is_kept_of_a_stream_that_ends_inside_of_arguments(arguments: str, tail: bytes) -> None:
    good = build_call_delta("{}", name="f", id="c1", index=0)
    turn = read([render_chunk(good), render_chunk(build_call_delta(arguments, name="g", id="c2", index=1)) + tail])
    assert (turn.calls, len(turn.calls_found), turn.ignored_call_count, turn.is_truncated) == ((), 2, 2, True)
    assert codes(turn)[0] == "stream_cut"


def test_a_stream_that_ends_inside_of_a_legacy_calls_arguments_is_cut() -> None:
    turn = read([render_chunk({"function_call": {"name": "f", "arguments": '{"a": 1'}})])
    assert (turn.is_truncated, codes(turn)[0]) == (True, "stream_cut")


def test_stream_done_within_arguments_without_reason_is_cut() -> None:
    turn = read([render_stream(render_chunk(build_call_delta('{"a":', name="f", id="c1", index=0)), finish="")])
    assert (turn.calls, turn.is_truncated, codes(turn)[0]) == ((), True, "stream_cut")


@pytest.mark.parametrize("later", [build_call_delta('{"a": 2}', name="f", id="c2", index=1), {"content": "So."}])
def test_open_arguments_in_continuing_stream_are_bad_call_not_cut(later: JsonObject) -> None:
    opened = render_chunk(build_call_delta('{"a": 1', name="f", id="c1", index=0))
    turn = read([render_stream(opened + render_chunk(later), finish="")])
    assert (turn.calls[0].id, turn.is_truncated) == ("c1", False)


def test_a_text_of_arguments_that_is_called_done_before_its_end_is_cut_too() -> None:
    begun, whole = '"{\\"a\\":', '"{\\"a\\": 1}"'
    cuts = [
        read([render_stream(render_chunk(build_call_delta(text, name="f", id="c1", index=0)), finish="")]).is_truncated
        for text in (begun, whole)
    ]
    assert cuts == [True, False]


def test_arguments_cut_by_the_token_limit_are_no_cut_stream() -> None:
    turn = read([render_stream(render_chunk(build_call_delta('{"a":', name="f", id="c1", index=0)), finish="length")])
    assert (made(turn), turn.is_truncated) == ([("c1", "f", '{"a":')], False)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "no_choices"),
        (b": nothing\n\n", "no_choices"),
        (render_event(b"[DONE]"), "no_choices"),
        (render_chunk(usage={"prompt_tokens": 1}), "no_choices"),
        (render_stream(render_chunk({"content": "a"}), render_event({"error": {"message": "broken"}})), "error_object"),
        (render_stream(render_event({"choices": [{"delta": {}, "error": {"message": "broken"}}]})), "error_object"),
        (render_chunk({"content": "a"}) + b'error: {"message": "broken"}\n\n', "error_object"),
        (render_stream(render_event(b"{oops"), render_chunk({"content": "a"})), "not_json"),
        (b"[1]", "not_object"),
    ],
)
def test_bytes_that_are_no_answer_are_refused_and_forgotten(body: bytes, code: str) -> None:
    decoder = StreamDecoder(lambda found: Turn(found.message, ""))
    decoder.feed(body)
    with pytest.raises(MalformedAnswerError) as raised:
        decoder.close()
    assert raised.value.code == code
    decoder.feed(render_stream(render_chunk({"content": "again"}), finish="stop"))
    assert decoder.close().message["content"] == "again"


@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"data: ", b"\n\n", b'{"choices":[{"delta":', b"}]}"])))
def test_whatever_the_bytes_are_the_end_is_a_turn_or_a_refusal(parts: list[bytes]) -> None:
    with suppress(MalformedAnswerError):
        assert isinstance(read(parts), Turn)


def test_a_consumer_sees_every_piece_and_the_message_as_it_grows() -> None:
    deltas: list[Delta] = []
    decoder = StreamDecoder(lambda found: Turn(found.message, ""), deltas.append)
    for part in (
        render_chunk({"content": "Hi"}),
        render_chunk(build_call_delta('{"ops": [', name="f", id="c1", index=0)),
    ):
        decoder.feed(part)
    assert deltas == [Delta(text="Hi"), Delta(call_index=0, name="f", arguments='{"ops": [')]
    assert decoder.partial["tool_calls"][0]["function"]["arguments"] == '{"ops": ['
    decoder.feed(render_chunk(build_call_delta("]}", index=0)))
    assert deltas[-1].is_closed


def test_a_streamed_run_is_asked_for_told_and_ends_like_any_other() -> None:
    given_plan = LoopPlan("m-1", resolve_policy([]).policy, "", "Go.", tools=TOOLS, is_streamed=True)
    patch = build_call(PATCH_TOOL.name, '{"ops": []}')
    played = run_script(
        given_plan, [render_as_stream(build_calling_answer(patch)), render_as_stream(build_answer("Done."))]
    )
    assert (played.ended.end, played.ended.final_text, len(played.ran)) == (EndReason.FINAL, "Done.", 1)
    assert [body["stream"] for body in played.bodies] == [True, True]
    assert played.bodies[0]["stream_options"] == {"include_usage": True}
    assert "".join(item["arguments"] for item in played.list_event_data("llm_delta") if "call" in item) == '{"ops": []}'
    assert "".join(item.get("text", "") for item in played.list_event_data("llm_delta")) == "Done."
    assert played.ended.usage.input_tokens == 20


def test_a_run_that_is_not_streamed_does_not_speak_of_streams() -> None:
    body = run_script(build_plan(request_overrides={"stream": True}), [build_answer()]).bodies[0]
    assert not {"stream", "stream_options"} & set(body)


def test_the_wish_for_usage_can_be_left_out_or_replaced() -> None:
    for given_options, sent in ((None, {}), ({"x": 1}, {"stream_options": {"x": 1}})):
        policy = resolve_policy([("test", {"request_overrides": {"stream_options": given_options}})]).policy
        body = run_script(
            LoopPlan("m-1", policy, "", "Go.", is_streamed=True), [render_as_stream(build_answer())]
        ).bodies[0]
        assert {key: body[key] for key in body if key.startswith("stream_")} == sent
