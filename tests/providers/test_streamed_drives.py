"""The one driver with answers that come as streams."""

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


def sse(*payloads: object, done: bool = True, **more: Any) -> ScriptedReply:
    """An answer as a stream, one chunk per event."""
    events = [f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads]
    headers = {"content-type": "text/event-stream"}
    return ScriptedReply(
        200, headers, [*events, *([b"data: [DONE]\n\n"] if done else [])], ending=ConnectionEnd.CLOSE, **more
    )


def part(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def asks(arguments: str, **more: Any) -> JsonObject:
    return part({"tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}}]})


CALL = (asks("", name="get_weather"), asks('{"city": '), asks('"Oslo"}'), part({}, "tool_calls"))
HALF = (*CALL[:2],)
STREAMED_TEXT = sse(part({"content": "Ra"}), part({"content": "in."}), part({}, "stop"))


def test_a_streamed_trial_runs_to_its_end_and_its_first_moments_are_timed(provider: ScriptedServer) -> None:
    provider.set_script(sse(*CALL, pause=0.01), STREAMED_TEXT)
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert (ended.end, ended.final_text) == (EndReason.FINAL, "Rain.")
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


def completed(text: str) -> JsonObject:
    return {"choices": [{"index": 0, "text": text, "finish_reason": None}]}


def said_by_llama(text: str) -> JsonObject:
    return {"content": text, "stop": False}


@pytest.mark.parametrize(
    ("patch", "text", "piece"),
    [
        ({"method": "text_json"}, WRITTEN, lambda text: part({"content": text})),
        ({"method": "constrained"}, WRITTEN, lambda text: part({"content": text})),
        ({"method": "template"}, TAGGED, completed),
        ({"method": "template", "prompt_endpoint": "llama"}, TAGGED, said_by_llama),
    ],
)
def test_a_call_that_stands_in_the_text_is_timed_when_it_is_whole(
    provider: ScriptedServer, patch: JsonObject, text: str, piece: Callable[[str], JsonObject]
) -> None:
    provider.set_script(sse(piece(text[:20]), piece(text[20:]), piece("\n"), pause=0.01), sse(piece("Rain.")))
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(**patch), is_streamed=True))
    assert ended.turns[0].answer is not None
    assert [call.name for call in ended.turns[0].answer.calls] == ["get_weather"]
    first, last = notes.exchanges
    assert None not in (first.first_token_ms, first.first_call_ms)
    assert (first.first_token_ms or 0) < (first.first_call_ms or 0) < first.duration_ms
    assert last.first_call_ms is None


def test_a_stream_that_ends_inside_arguments_executes_nothing(provider: ScriptedServer) -> None:
    provider.set_script(sse(*HALF, done=False))
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert ended.turns[0].answer is not None
    assert ended.turns[0].answer.is_truncated
    assert [type(step).__name__ for step in notes.steps] == ["ExchangeStep"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (sse(*HALF, done=False), "stream_cut"),
        (sse(*HALF, {"error": {"code": 502, "message": "gone"}}), "answer_cut"),
        (sse(*HALF, done=False, declared=1000), "answer_cut"),
    ],
)
def test_cut_answer_is_requested_again_only_if_policy_says_so(
    provider: ScriptedServer, answer: ScriptedReply, code: str
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert len(notes.exchanges) == 1
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(cut_stream_retries=1), is_streamed=True))
    assert ended.final_text == "Rain."
    assert [step.retry_reason for step in notes.exchanges] == ["", code]


def test_an_error_in_a_stream_keeps_the_half_that_came(provider: ScriptedServer) -> None:
    provider.set_script(sse(*HALF, {"error": {"code": 502, "message": "gone"}}))
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    step = notes.exchanges[0]
    assert (ended.end, notes.codes) == (EndReason.PROVIDER_ERROR, ["answer_cut"])
    assert step.error is not None
    assert not step.error.infrastructure
    assert step.partial["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": '}


def test_an_error_before_the_first_token_is_the_providers_and_may_pass(provider: ScriptedServer) -> None:
    provider.set_script(sse({"error": {"code": 502, "message": "gone"}}), STREAMED_TEXT)
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(), is_streamed=True))
    assert (ended.final_text, notes.codes) == ("Rain.", ["bad_gateway", ""])


def test_a_cancelled_stream_keeps_the_half_that_came(provider: ScriptedServer) -> None:
    provider.set_script(replace(sse(part({"content": "Half"}), done=False), ending=ConnectionEnd.HANG))
    notes = TrialNotes()
    given = replace(build_plan(), is_streamed=True)
    ended = drive_trial(provider.endpoint(), notes, given, cancel_at=notes.has_heard)
    assert (ended.end, notes.codes) == (EndReason.CANCELLED, ["cancelled"])
    assert notes.exchanges[0].partial["content"] == "Half"


def test_a_key_that_a_stream_repeats_is_overwritten_in_what_is_read(provider: ScriptedServer) -> None:
    provider.set_script(sse(part({"content": "sk-secret-1234"}), part({}, "stop")))
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(key="sk-secret-1234"), notes, replace(build_plan(), is_streamed=True))
    assert ended.final_text == "*" * len("sk-secret-1234")
    assert len([event for event in notes.events if event.type == "llm_delta"]) == 1  # read again, and heard once


def test_stream_watcher_sees_growing_arguments_and_second_attempt_anew(
    provider: ScriptedServer,
) -> None:
    provider.set_script(sse(*HALF, done=False), sse(*CALL), STREAMED_TEXT)
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


def test_a_stream_of_nothing_that_was_meant_is_no_answer(provider: ScriptedServer) -> None:
    provider.set_script(sse({"hello": 1}))
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
HEALED = {"response_transforms": ["tool_calls_from_text"]}
REFUSALS = {
    "status 400": ScriptedReply(400, {"content-type": "application/json"}, json.dumps(REFUSED).encode()),
    "the first event": sse(REFUSED, done=False),
    "behind a role": sse(part({"role": "assistant", "content": None}), REFUSED),
    "behind text": sse(part({"content": "I will "}), part({"content": "look."}), REFUSED),
    "behind half a call": sse(*HALF, REFUSED),
    "in an error line": ScriptedReply(
        200,
        {"content-type": "text/event-stream"},
        [
            f"data: {json.dumps(part({'content': 'Hm'}))}\n\n".encode(),
            f"event: error\ndata: {json.dumps(REFUSED)}\n\n".encode(),
        ],
        ending=ConnectionEnd.CLOSE,
    ),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_call_is_healed_in_a_stream_as_with_status_400(
    provider: ScriptedServer, answer: ScriptedReply
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()

    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(**HEALED), is_streamed=True))

    assert (ended.end, ended.final_text) == (EndReason.FINAL, "Rain.")
    assert ended.turns[0].answer is not None
    assert [(call.name, call.arguments) for call in ended.turns[0].answer.calls] == [("get_weather", '{"city":"Oslo"}')]
    assert [finding.code for finding in ended.turns[0].answer.findings] == ["answer_refused", "finish_mismatch"]
    assert [type(step).__name__ for step in notes.steps] == ["ExchangeStep", "ToolStep", "ExchangeStep"]


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_call_is_the_models_failure_without_the_transform(
    provider: ScriptedServer, answer: ScriptedReply
) -> None:
    provider.set_script(answer, STREAMED_TEXT)
    notes = TrialNotes()

    ended = drive_trial(provider.endpoint(), notes, replace(build_plan(cut_stream_retries=1), is_streamed=True))

    assert (ended.end, notes.codes) == (EndReason.PROVIDER_ERROR, ["model_format"])
    assert notes.exchanges[0].error is not None
    assert "get_weather" in notes.exchanges[0].error.hint
