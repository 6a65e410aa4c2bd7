"""What endpoints put beside a call comes back to them as it was, whether the answer came whole or streamed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import build_answer, build_call, build_plan, run_script
from tests.engine.streams import build_call_delta, render_as_stream, render_chunk, render_stream
from toolbench.engine.types import JsonObject

SIGNATURE = {"google": {"thought_signature": "c2ln"}}
DETAILS = [
    {"type": "reasoning.summary", "summary": "Look first.", "index": 0},
    {"type": "reasoning.encrypted", "data": "c2VjcmV0", "index": 1},
]


def sent_back(body: bytes, *, as_stream: bool, **policy: Any) -> JsonObject:
    """The answer as the second request shows it."""
    script = [render_as_stream(body), render_as_stream(build_answer())] if as_stream else [body, build_answer()]
    played = run_script(replace(build_plan(**policy), is_streamed=as_stream), script)
    message: JsonObject = played.bodies[1]["messages"][1]
    return message


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "Look first."},
        {"reasoning": "Look first.", "reasoning_details": DETAILS},
        {"annotations": [{"type": "x"}], "refusal": "no"},
    ],
)
def test_fields_beside_the_calls_come_back_untouched(beside: JsonObject, as_stream: bool) -> None:
    message = sent_back(build_answer("", calls=[build_call()], finish="tool_calls", **beside), as_stream=as_stream)
    assert {key: message[key] for key in beside} == beside


def test_blank_reasoning_comes_back_too() -> None:
    whole = build_answer("", calls=[build_call()], finish="tool_calls", reasoning_content="")
    assert sent_back(whole, as_stream=False)["reasoning_content"] == ""
    parts = render_stream(
        render_chunk({"reasoning_content": ""}), render_chunk(build_call_delta("{}", name="state_get", id="a", index=0))
    )
    played = run_script(replace(build_plan(), is_streamed=True), [parts, render_as_stream(build_answer())])
    assert played.bodies[1]["messages"][1]["reasoning_content"] == ""


@pytest.mark.parametrize("as_stream", [False, True])
def test_a_signature_comes_back_on_the_same_call(as_stream: bool) -> None:
    calls = [{**build_call(call_id="a"), "extra_content": SIGNATURE}, build_call(call_id="b")]
    message = sent_back(build_answer(None, calls=calls, finish="tool_calls"), as_stream=as_stream)
    first, second = message["tool_calls"]
    assert first["extra_content"] == SIGNATURE
    assert "extra_content" not in second


def test_a_signature_that_comes_in_a_delta_of_its_own_belongs_to_its_call() -> None:
    deltas = [
        build_call_delta("{}", name="state_get", id="a", index=0),
        {"tool_calls": [{"index": 0, "extra_content": SIGNATURE}]},
    ]
    body = render_stream(*(render_chunk(delta) for delta in deltas))
    played = run_script(replace(build_plan(), is_streamed=True), [body, render_as_stream(build_answer())])
    (made,) = played.bodies[1]["messages"][1]["tool_calls"]
    assert (made["extra_content"], made["function"]["arguments"]) == (SIGNATURE, "{}")


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize("call_id", ["functions.state_get:0", "abcDEF123", "call_x", "toolu_1"])
def test_an_id_comes_back_as_it_was_on_both_sides(call_id: str, as_stream: bool) -> None:
    body = build_answer(None, calls=[build_call(call_id=call_id)], finish="tool_calls")
    script = [render_as_stream(body), render_as_stream(build_answer())] if as_stream else [body, build_answer()]
    said, told = run_script(replace(build_plan(), is_streamed=as_stream), script).bodies[1]["messages"][1:3]
    assert (said["tool_calls"][0]["id"], told["tool_call_id"]) == (call_id, call_id)


def test_sent_ids_match_endpoint_pattern_and_conversation_keeps_its_own() -> None:
    body = build_answer(None, calls=[build_call(call_id="call_long_id")], finish="tool_calls")
    played = run_script(build_plan(tool_id_pattern="[a-zA-Z0-9]{9}"), [body, build_answer()])
    said, told = played.bodies[1]["messages"][1:3]
    assert len(said["tool_calls"][0]["id"]) == 9
    assert told["tool_call_id"] == said["tool_calls"][0]["id"]
    assert "call_long_id" in json.dumps(played.ended.history)
    assert [change.name for change in played.ended.turns[1].request.changes] == ["tool_call_ids_fit_pattern"] * 2
