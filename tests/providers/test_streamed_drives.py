"""Tests of the driver with streamed answers."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.driven_trials import TrialNotes, build_plan, drive_trial
from toolbench.engine.events import EndReason
from toolbench.engine.streaming_answer import StreamingAnswer
from toolbench.engine.types import JsonObject
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer


def build_stream_reply(*payloads: object, done: bool = True, **more: Any) -> ScriptedReply:
    """Return an answer as a stream, one chunk for each event."""
    events = [f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads]
    headers = {"content-type": "text/event-stream"}
    return ScriptedReply(
        200, headers, [*events, *([b"data: [DONE]\n\n"] if done else [])], ending=ConnectionEnd.CLOSE, **more
    )


def build_chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def build_call_chunk(arguments: str, **more: Any) -> JsonObject:
    return build_chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}}]})


CALL = (
    build_call_chunk("", name="get_weather"),
    build_call_chunk('{"city": '),
    build_call_chunk('"Oslo"}'),
    build_chunk({}, "tool_calls"),
)
HALF = (*CALL[:2],)
STREAMED_TEXT = build_stream_reply(
    build_chunk({"content": "Ra"}), build_chunk({"content": "in."}), build_chunk({}, "stop")
)


def test_drive_streamed_trial_times_first_byte_token_and_call(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply(*CALL, pause=0.01), STREAMED_TEXT)
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert (loop_result.end, loop_result.final_text) == (EndReason.FINAL, "Rain.")
    assert [seen.json()["stream"] for seen in provider.seen] == [True, True]
    first, last = notes.exchanges
    assert first.request.is_streamed
    assert first.response_body.count(b"data: ") == 5
    assert None not in (first.first_byte_ms, first.first_token_ms, first.first_call_ms)
    assert (first.first_byte_ms or 0) <= (first.first_token_ms or 0) <= (first.first_call_ms or 0) <= first.duration_ms
    assert (last.first_token_ms is None, last.first_call_ms) == (False, None)
    assert [event.data.get("text") for event in notes.events if event.type == "llm_delta"][-2:] == ["Ra", "in."]


WRITTEN = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
TAGGED = f"<tool_call>\n{WRITTEN}\n</tool_call>"


def build_completion_chunk(text: str) -> JsonObject:
    return {"choices": [{"index": 0, "text": text, "finish_reason": None}]}


def build_llama_chunk(text: str) -> JsonObject:
    return {"content": text, "stop": False}


@pytest.mark.parametrize(
    ("patch", "text", "build_event"),
    [
        ({"method": "text_json"}, WRITTEN, lambda text: build_chunk({"content": text})),
        ({"method": "constrained"}, WRITTEN, lambda text: build_chunk({"content": text})),
        ({"method": "template"}, TAGGED, build_completion_chunk),
        ({"method": "template", "prompt_endpoint": "llama"}, TAGGED, build_llama_chunk),
    ],
)
def test_drive_streamed_call_in_text_is_timed_when_complete(
    provider: ScriptedServer, patch: JsonObject, text: str, build_event: Callable[[str], JsonObject]
) -> None:
    provider.set_script(
        build_stream_reply(build_event(text[:20]), build_event(text[20:]), build_event("\n"), pause=0.01),
        build_stream_reply(build_event("Rain.")),
    )
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(**patch), is_streamed=True))
    assert loop_result.turns[0].answer is not None
    assert [call.name for call in loop_result.turns[0].answer.calls] == ["get_weather"]
    first, last = notes.exchanges
    assert None not in (first.first_token_ms, first.first_call_ms)
    assert (first.first_token_ms or 0) < (first.first_call_ms or 0) < first.duration_ms
    assert last.first_call_ms is None


def test_drive_stream_that_ends_in_arguments_executes_nothing(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply(*HALF, done=False))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert loop_result.turns[0].answer is not None
    assert loop_result.turns[0].answer.is_truncated
    assert [type(step).__name__ for step in notes.steps] == ["ExchangeStep"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (build_stream_reply(*HALF, done=False), "stream_cut"),
        (build_stream_reply(*HALF, {"error": {"code": 502, "message": "gone"}}), "answer_cut"),
        (build_stream_reply(*HALF, done=False, declared=1000), "answer_cut"),
    ],
)
def test_drive_retries_a_cut_stream_only_if_policy_says_so(
    provider: ScriptedServer, answer: ScriptedReply, code: str
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert len(notes.exchanges) == 1
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(cut_stream_retries=1), is_streamed=True))
    assert loop_result.final_text == "Rain."
    assert [step.retry_reason for step in notes.exchanges] == ["", code]


def test_drive_error_in_a_stream_keeps_the_partial_answer(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply(*HALF, {"error": {"code": 502, "message": "gone"}}))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    step = notes.exchanges[0]
    assert (loop_result.end, notes.codes) == (EndReason.PROVIDER_ERROR, ["answer_cut"])
    assert step.error is not None
    assert not step.error.infrastructure
    assert step.partial["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": '}


def test_drive_stream_error_before_the_first_token_is_retried(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply({"error": {"code": 502, "message": "gone"}}), STREAMED_TEXT)
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert (loop_result.final_text, notes.codes) == ("Rain.", ["bad_gateway", ""])


def test_drive_cancelled_stream_keeps_the_partial_answer(provider: ScriptedServer) -> None:
    provider.set_script(
        replace(build_stream_reply(build_chunk({"content": "Half"}), done=False), ending=ConnectionEnd.HANG)
    )
    notes = TrialNotes()
    plan = replace(build_plan(), is_streamed=True)
    loop_result = drive_trial(provider.endpoint(), notes, plan, cancel_at=notes.has_delta)
    assert (loop_result.end, notes.codes) == (EndReason.CANCELLED, ["cancelled"])
    assert notes.exchanges[0].partial["content"] == "Half"


def test_drive_masks_a_key_that_a_stream_repeats(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply(build_chunk({"content": "sk-secret-1234"}), build_chunk({}, "stop")))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(key="sk-secret-1234"), notes, replace(build_plan(), is_streamed=True))
    assert loop_result.final_text == "*" * len("sk-secret-1234")
    assert (
        len([event for event in notes.events if event.type == "llm_delta"]) == 1
    )  # the answer is read again, but emitted once


def test_streaming_answer_shows_growing_arguments_and_starts_anew(
    provider: ScriptedServer,
) -> None:
    provider.set_script(build_stream_reply(*HALF, done=False), build_stream_reply(*CALL), STREAMED_TEXT)
    notes, watched, seen = TrialNotes(), StreamingAnswer(), []
    drive_trial(provider.endpoint(), notes, replace(build_plan(cut_stream_retries=1), is_streamed=True))
    for event in notes.events:
        watched.take(event)
        seen += [(watched.calls[0].arguments, watched.calls[0].is_complete)] if "call" in event.data else []
    assert seen == [
        (None, False),
        ({}, False),
        (None, False),
        ({}, False),
        ({"city": "Oslo"}, True),
    ]
    assert (watched.text, watched.calls) == ("Rain.", [])


def test_drive_stream_without_an_answer_is_malformed_answer(provider: ScriptedServer) -> None:
    provider.set_script(build_stream_reply({"hello": 1}))
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert notes.codes == ["malformed_answer"]


QUOTED = '<function=get_weather{"city": "Oslo"}</function>'
REFUSED = {
    "error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": QUOTED,
        "status_code": 400,
    }
}
RECOVERY = {"response_transforms": ["tool_calls_from_text"]}
REFUSALS = {
    "status 400": ScriptedReply(400, {"content-type": "application/json"}, json.dumps(REFUSED).encode()),
    "the first event": build_stream_reply(REFUSED, done=False),
    "after a role": build_stream_reply(build_chunk({"role": "assistant", "content": None}), REFUSED),
    "after text": build_stream_reply(build_chunk({"content": "I will "}), build_chunk({"content": "look."}), REFUSED),
    "after half a call": build_stream_reply(*HALF, REFUSED),
    "in an error line": ScriptedReply(
        200,
        {"content-type": "text/event-stream"},
        [
            f"data: {json.dumps(build_chunk({'content': 'Hm'}))}\n\n".encode(),
            f"event: error\ndata: {json.dumps(REFUSED)}\n\n".encode(),
        ],
        ending=ConnectionEnd.CLOSE,
    ),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_drive_refused_call_in_a_stream_is_recovered_by_a_transform(
    provider: ScriptedServer, answer: ScriptedReply
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()

    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(**RECOVERY), is_streamed=True))

    assert (loop_result.end, loop_result.final_text) == (EndReason.FINAL, "Rain.")
    assert loop_result.turns[0].answer is not None
    assert [(call.name, call.arguments) for call in loop_result.turns[0].answer.calls] == [
        ("get_weather", '{"city":"Oslo"}')
    ]
    assert [finding.code for finding in loop_result.turns[0].answer.findings] == ["answer_refused", "finish_mismatch"]
    assert [type(step).__name__ for step in notes.steps] == ["ExchangeStep", "ToolStep", "ExchangeStep"]


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_drive_refused_call_without_the_transform_is_model_format(
    provider: ScriptedServer, answer: ScriptedReply
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()

    loop_result = drive_trial(provider.endpoint(), notes, replace(build_plan(cut_stream_retries=1), is_streamed=True))

    assert (loop_result.end, notes.codes) == (EndReason.PROVIDER_ERROR, ["model_format"])
    assert notes.exchanges[0].error is not None
    assert "get_weather" in notes.exchanges[0].error.hint
