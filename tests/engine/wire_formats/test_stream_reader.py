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


def decode_stream(parts: Iterable[bytes], deltas: list[Delta] | None = None) -> Turn:
    decoder = StreamDecoder(
        lambda answer: parse_chat_turn(SETUP, answer, has_tools=True), (deltas if deltas is not None else []).append
    )
    for part in parts:
        decoder.feed(part)
    return decoder.close()


def decode_body(body: bytes) -> Turn:
    decoder = BodyDecoder(lambda answer: parse_chat_turn(SETUP, answer, has_tools=True))
    decoder.feed(body)
    return decoder.close()


def list_stream_codes(turn: Turn) -> list[str]:
    return [finding.code for finding in turn.findings if finding.code.startswith("stream_")]


def list_calls(turn: Turn) -> list[tuple[str, str, Any]]:
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
).map(lambda calls: [{**item, "id": f"call_{index}"} for index, item in enumerate(calls)])


@settings(deadline=None, database=None)
@given(
    TEXT | st.none(),
    CALLS,
    st.dictionaries(st.sampled_from(["reasoning_content", "refusal", "x"]), TEXT, max_size=2),
    st.integers(1, 9),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_stream_decoder_in_any_chunks_equals_complete_answer(
    content: str | None, calls: list[JsonObject], fields: JsonObject, size: int, offsets: list[int]
) -> None:
    body = build_answer(content, calls=calls or None, finish="tool_calls" if calls else "stop", **fields)
    expected = decode_body(body)
    turn = decode_stream(split_at(render_as_stream(body, size), offsets))
    message = {key: value for key, value in expected.message.items() if value != "" or key == "content"}
    assert turn.message == message
    assert (turn.calls, turn.calls_found) == (expected.calls, expected.calls_found)
    assert (turn.text, turn.usage, turn.finish_reason, turn.findings) == (
        expected.text,
        expected.usage,
        expected.finish_reason,
        expected.findings,
    )


def test_stream_decoder_joins_legacy_function_call() -> None:
    name = render_chunk({"function_call": {"name": "f", "arguments": ""}})
    arguments = [render_chunk({"function_call": {"arguments": part}}) for part in ('{"', '"', ":1}")]
    deltas: list[Delta] = []
    decoder = StreamDecoder(lambda answer: Turn(answer.message, ""), deltas.append)
    decoder.feed(render_stream(name, *arguments, finish="function_call"))
    assert decoder.close().message["function_call"] == {"name": "f", "arguments": '{"":1}'}
    assert [(item.name, item.is_closed) for item in deltas] == [("f", False), ("f", False), ("f", False), ("f", True)]


def test_stream_decoder_joins_unknown_fields_and_keeps_them_in_message() -> None:
    signed = build_call_delta("{}", name="f", id="c1", index=0, extra_content={"google": {"thought_signature": "s"}})
    details = [{"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": part}]} for part in ("a", "a")]
    deltas: list[JsonObject] = [{"reasoning_content": "th"}, {"reasoning_content": "ink"}, *details, signed]
    turn = decode_stream([render_stream(*map(render_chunk, deltas))])
    assert turn.message["reasoning_content"] == "think"
    assert turn.message["reasoning_details"] == [{"type": "reasoning.text", "index": 0, "text": "aa"}]
    assert turn.message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_stream_decoder_reads_name_of_the_model_once() -> None:
    deltas = [{"role": "assistant", "name": "M", "content": part} for part in ("a", "b")]
    message = decode_stream([render_stream(*map(render_chunk, deltas), finish="stop")]).message
    assert (message["name"], message["role"], message["content"]) == ("M", "assistant", "ab")


@pytest.mark.parametrize("blank", [None, ""])
def test_stream_decoder_emits_reasoning_beside_a_blank_field(blank: str | None) -> None:
    deltas: list[Delta] = []
    decode_stream([render_stream(render_chunk({"reasoning_content": blank, "reasoning": "think"}))], deltas)
    assert [delta.reasoning for delta in deltas] == ["think"]


def test_stream_decoder_adds_late_signature_to_its_call() -> None:
    late = {"tool_calls": [{"extra_content": {"google": {"thought_signature": "s"}}}]}
    turn = decode_stream([render_stream(render_chunk(build_call_delta("{}", name="f", id="c1")), render_chunk(late))])
    assert turn.message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "s"


@pytest.mark.parametrize("finish", ["", None])
def test_stream_decoder_ignores_blank_finish_reasons(finish: str | None) -> None:
    first = render_event({"choices": [{"delta": {"content": "a"}, "finish_reason": finish}]})
    turn = decode_stream([render_stream(first, render_chunk({"content": "b"}, finish=""), finish="stop")])
    assert (turn.text, turn.finish_reason) == ("ab", "stop")


def test_stream_decoder_ignores_first_events_without_choices() -> None:
    turn = decode_stream(
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
def test_stream_decoder_accepts_every_line_ending(ending: str) -> None:
    body = (
        render_stream(b": waiting\n\n", render_chunk({"content": "ü"}), finish="stop")
        .decode()
        .replace("\n", ending)
        .encode()
    )
    assert [decode_stream(split_at(body, range(0, len(body), n))).text for n in (1, 7, len(body))] == ["ü"] * 3


def test_stream_decoder_needs_no_blank_line_and_no_space_after_colon() -> None:
    body = render_stream(render_chunk({"content": "a"}), render_chunk({"content": "b"}), finish="stop")
    assert decode_stream([body.replace(b"\n\n", b"\n")]).text == "ab"
    assert decode_stream([body.replace(b"data: ", b"data:")]).text == "ab"


def test_stream_decoder_accepts_event_on_several_lines() -> None:
    spread = b'data: {\ndata: "choices": [{"delta": {"content": "a"}}]\ndata: }\n\n'
    assert decode_stream([render_stream(spread, finish="stop")]).text == "a"


@pytest.mark.parametrize("before", [b"", b"\n ", b"\xef\xbb\xbf\n"], ids=["", "blank", "byte order mark"])
def test_stream_decoder_reads_unstreamed_body_with_finding(before: bytes) -> None:
    turn = decode_stream([bytes([byte]) for byte in before + build_answer("Hi.")])
    assert (turn.text, list_stream_codes(turn)) == ("Hi.", ["stream_not_streamed"])


def test_stream_without_done_is_read_with_finding() -> None:
    turn = decode_stream([render_stream(render_chunk(build_call_delta("{}", name="f", id="c1", index=0)), done=False)])
    assert (len(turn.calls), list_stream_codes(turn)) == (1, ["stream_done_missing"])


def test_complete_call_in_unfinished_stream_is_kept() -> None:
    turn = decode_stream(
        [render_stream(render_chunk(build_call_delta("{}", name="f", id="c1", index=0)), finish="", done=False)]
    )
    assert (len(turn.calls), turn.is_truncated, list_stream_codes(turn)) == (1, False, ["stream_unfinished"])


def test_stream_without_usage_has_finding() -> None:
    turn = decode_stream([render_stream(render_chunk({"content": "a"}), finish="stop", usage=False)])
    assert (turn.usage, list_stream_codes(turn)) == (None, ["stream_usage_missing"])


@pytest.mark.parametrize("tail", [b"", b'data: {"choices": [{"del'])
@pytest.mark.parametrize("arguments", ['{"a":', '{"a": "b', ""])
def test_stream_cut_inside_arguments_keeps_no_call(arguments: str, tail: bytes) -> None:
    good = build_call_delta("{}", name="f", id="c1", index=0)
    turn = decode_stream(
        [render_chunk(good), render_chunk(build_call_delta(arguments, name="g", id="c2", index=1)) + tail]
    )
    assert (turn.calls, len(turn.calls_found), turn.ignored_call_count, turn.is_truncated) == ((), 2, 2, True)
    assert list_stream_codes(turn)[0] == "stream_cut"


def test_stream_cut_inside_legacy_arguments_is_truncated() -> None:
    turn = decode_stream([render_chunk({"function_call": {"name": "f", "arguments": '{"a": 1'}})])
    assert (turn.is_truncated, list_stream_codes(turn)[0]) == (True, "stream_cut")


def test_stream_done_inside_arguments_without_finish_reason_is_truncated() -> None:
    turn = decode_stream(
        [render_stream(render_chunk(build_call_delta('{"a":', name="f", id="c1", index=0)), finish="")]
    )
    assert (turn.calls, turn.is_truncated, list_stream_codes(turn)[0]) == ((), True, "stream_cut")


@pytest.mark.parametrize("later", [build_call_delta('{"a": 2}', name="f", id="c2", index=1), {"content": "So."}])
def test_open_arguments_in_continuing_stream_are_not_truncated(later: JsonObject) -> None:
    opened = render_chunk(build_call_delta('{"a": 1', name="f", id="c1", index=0))
    turn = decode_stream([render_stream(opened + render_chunk(later), finish="")])
    assert (turn.calls[0].id, turn.is_truncated) == ("c1", False)


def test_double_encoded_arguments_done_before_their_end_are_truncated() -> None:
    begin, complete = '"{\\"a\\":', '"{\\"a\\": 1}"'
    cuts = [
        decode_stream(
            [render_stream(render_chunk(build_call_delta(text, name="f", id="c1", index=0)), finish="")]
        ).is_truncated
        for text in (begin, complete)
    ]
    assert cuts == [True, False]


def test_arguments_cut_by_token_limit_are_no_truncated_stream() -> None:
    turn = decode_stream(
        [render_stream(render_chunk(build_call_delta('{"a":', name="f", id="c1", index=0)), finish="length")]
    )
    assert (list_calls(turn), turn.is_truncated) == ([("c1", "f", '{"a":')], False)


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
def test_stream_decoder_refuses_other_bytes_and_is_reusable(body: bytes, code: str) -> None:
    decoder = StreamDecoder(lambda answer: Turn(answer.message, ""))
    decoder.feed(body)
    with pytest.raises(MalformedAnswerError) as raised:
        decoder.close()
    assert raised.value.code == code
    decoder.feed(render_stream(render_chunk({"content": "again"}), finish="stop"))
    assert decoder.close().message["content"] == "again"


@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"data: ", b"\n\n", b'{"choices":[{"delta":', b"}]}"])))
def test_stream_decoder_any_bytes_give_turn_or_malformed_answer_error(parts: list[bytes]) -> None:
    with suppress(MalformedAnswerError):
        assert isinstance(decode_stream(parts), Turn)


def test_stream_decoder_emits_deltas_and_partial_message() -> None:
    deltas: list[Delta] = []
    decoder = StreamDecoder(lambda answer: Turn(answer.message, ""), deltas.append)
    for part in (
        render_chunk({"content": "Hi"}),
        render_chunk(build_call_delta('{"ops": [', name="f", id="c1", index=0)),
    ):
        decoder.feed(part)
    assert deltas == [Delta(text="Hi"), Delta(call_index=0, name="f", arguments='{"ops": [')]
    assert decoder.partial["tool_calls"][0]["function"]["arguments"] == '{"ops": ['
    decoder.feed(render_chunk(build_call_delta("]}", index=0)))
    assert deltas[-1].is_closed


def test_streamed_run_requests_streams_and_emits_deltas() -> None:
    plan = LoopPlan("m-1", resolve_policy([]).policy, "", "Go.", tools=TOOLS, is_streamed=True)
    patch = build_call(PATCH_TOOL.name, '{"ops": []}')
    run = run_script(plan, [render_as_stream(build_calling_answer(patch)), render_as_stream(build_answer("Done."))])
    assert (run.ended.end, run.ended.final_text, len(run.ran)) == (EndReason.FINAL, "Done.", 1)
    assert [body["stream"] for body in run.bodies] == [True, True]
    assert run.bodies[0]["stream_options"] == {"include_usage": True}
    assert "".join(item["arguments"] for item in run.list_event_data("llm_delta") if "call" in item) == '{"ops": []}'
    assert "".join(item.get("text", "") for item in run.list_event_data("llm_delta")) == "Done."
    assert run.ended.usage.input_tokens == 20


def test_unstreamed_run_sends_no_stream_parameters() -> None:
    body = run_script(build_plan(request_overrides={"stream": True}), [build_answer()]).bodies[0]
    assert not {"stream", "stream_options"} & set(body)


def test_stream_options_can_be_omitted_or_replaced_by_policy() -> None:
    for given_options, sent in ((None, {}), ({"x": 1}, {"stream_options": {"x": 1}})):
        policy = resolve_policy([("test", {"request_overrides": {"stream_options": given_options}})]).policy
        body = run_script(
            LoopPlan("m-1", policy, "", "Go.", is_streamed=True), [render_as_stream(build_answer())]
        ).bodies[0]
        assert {key: body[key] for key in body if key.startswith("stream_")} == sent
