"""Tests that the next request returns unknown fields of an answer unchanged, complete or streamed."""

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


def get_returned_message(body: bytes, *, as_stream: bool, **policy: Any) -> JsonObject:
    """Return the message of the answer in the second request."""
    script = [render_as_stream(body), render_as_stream(build_answer())] if as_stream else [body, build_answer()]
    run = run_script(replace(build_plan(**policy), is_streamed=as_stream), script)
    message: JsonObject = run.bodies[1]["messages"][1]
    return message


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize(
    "extra_fields",
    [
        {"reasoning_content": "Look first."},
        {"reasoning": "Look first.", "reasoning_details": DETAILS},
        {"annotations": [{"type": "x"}], "refusal": "no"},
    ],
)
def test_run_loop_returns_extra_fields_of_answer_unchanged(extra_fields: JsonObject, as_stream: bool) -> None:
    message = get_returned_message(
        build_answer("", calls=[build_call()], finish="tool_calls", **extra_fields), as_stream=as_stream
    )
    assert {key: message[key] for key in extra_fields} == extra_fields


def test_run_loop_returns_blank_reasoning_content() -> None:
    body = build_answer("", calls=[build_call()], finish="tool_calls", reasoning_content="")
    assert get_returned_message(body, as_stream=False)["reasoning_content"] == ""
    stream = render_stream(
        render_chunk({"reasoning_content": ""}), render_chunk(build_call_delta("{}", name="state_get", id="a", index=0))
    )
    run = run_script(replace(build_plan(), is_streamed=True), [stream, render_as_stream(build_answer())])
    assert run.bodies[1]["messages"][1]["reasoning_content"] == ""


@pytest.mark.parametrize("as_stream", [False, True])
def test_run_loop_returns_signature_on_its_call(as_stream: bool) -> None:
    calls = [{**build_call(call_id="a"), "extra_content": SIGNATURE}, build_call(call_id="b")]
    message = get_returned_message(build_answer(None, calls=calls, finish="tool_calls"), as_stream=as_stream)
    first, second = message["tool_calls"]
    assert first["extra_content"] == SIGNATURE
    assert "extra_content" not in second


def test_run_loop_adds_signature_of_later_delta_to_its_call() -> None:
    deltas = [
        build_call_delta("{}", name="state_get", id="a", index=0),
        {"tool_calls": [{"index": 0, "extra_content": SIGNATURE}]},
    ]
    body = render_stream(*(render_chunk(delta) for delta in deltas))
    run = run_script(replace(build_plan(), is_streamed=True), [body, render_as_stream(build_answer())])
    (call,) = run.bodies[1]["messages"][1]["tool_calls"]
    assert (call["extra_content"], call["function"]["arguments"]) == (SIGNATURE, "{}")


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize("call_id", ["functions.state_get:0", "abcDEF123", "call_x", "toolu_1"])
def test_run_loop_returns_endpoint_id_in_call_and_result(call_id: str, as_stream: bool) -> None:
    body = build_answer(None, calls=[build_call(call_id=call_id)], finish="tool_calls")
    script = [render_as_stream(body), render_as_stream(build_answer())] if as_stream else [body, build_answer()]
    call, result = run_script(replace(build_plan(), is_streamed=as_stream), script).bodies[1]["messages"][1:3]
    assert (call["tool_calls"][0]["id"], result["tool_call_id"]) == (call_id, call_id)


def test_run_loop_sends_matching_ids_and_keeps_original_in_history() -> None:
    body = build_answer(None, calls=[build_call(call_id="call_long_id")], finish="tool_calls")
    run = run_script(build_plan(tool_id_pattern="[a-zA-Z0-9]{9}"), [body, build_answer()])
    call_message, result_message = run.bodies[1]["messages"][1:3]
    assert len(call_message["tool_calls"][0]["id"]) == 9
    assert result_message["tool_call_id"] == call_message["tool_calls"][0]["id"]
    assert "call_long_id" in json.dumps(run.ended.history)
    assert [change.name for change in run.ended.turns[1].request.changes] == ["tool_call_ids_fit_pattern"] * 2
