"""Tests of the driver on the real loop and real sockets."""

import asyncio
from dataclasses import replace

import pytest

from tests.providers.driven_trials import OSLO_CALL, TrialNotes, build_plan, drive_trial
from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import EndReason, Event
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Timeouts
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
    json_reply,
    text_reply,
    tool_call_reply,
)


def test_drive_runs_to_the_end_and_records_every_step(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(OSLO_CALL), text_reply("Rain."))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(key="sk-secret-1234"), notes)
    assert (loop_result.end, loop_result.final_text) == (EndReason.FINAL, "Rain.")
    assert [type(step).__name__ for step in notes.steps] == ["ExchangeStep", "ToolStep", "ExchangeStep"]
    assert [step.ordinal for step in notes.steps] == [1, 2, 3]
    assert [step.turn for step in notes.steps] == [0, 0, 1]
    first = notes.exchanges[0]
    assert first.request_body == provider.seen[0].body == first.request.body
    assert first.request_headers["authorization"] == "*" * len("Bearer sk-secret-1234")
    assert first.masked
    assert first.turn_read is not None
    assert first.turn_read.calls[0].name == "get_weather"
    assert (first.status, first.attempt, first.error, first.body_cut) == (200, 1, None, False)
    assert first.response_body.startswith(b'{"id": "scripted-1"')
    assert first.body_bytes == len(first.response_body) == sum(size for _, size in first.chunks)
    assert first.first_byte_ms is not None
    assert 0 < first.first_byte_ms <= first.duration_ms
    tool = notes.steps[1]
    assert isinstance(tool, ToolStep)
    assert tool.result.was_executed
    assert tool.result.content in provider.seen[1].json()["messages"][-1]["content"]
    assert first.started_ms <= tool.started_ms <= notes.exchanges[1].started_ms


def test_drive_records_a_call_that_may_not_run(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(("unknown_tool", {}), OSLO_CALL), text_reply("Rain."))
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes)
    tools = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert [(step.result.call.name, step.result.was_executed) for step in tools] == [
        ("unknown_tool", False),
        ("get_weather", True),
    ]


def test_drive_explains_refused_arguments_and_hides_other_failures(provider: ScriptedServer) -> None:
    def call_tool(name: str, arguments: JsonObject, call_id: str) -> object:
        raise ToolArgumentError("no such city") if call_id == "call_1" else RuntimeError("password=hunter2")

    provider.set_script(tool_call_reply(OSLO_CALL, OSLO_CALL), text_reply("Sorry."))
    notes = TrialNotes(tool=call_tool)
    drive_trial(provider.endpoint(), notes)
    errors = [step.result.envelope.errors[0] for step in notes.steps if isinstance(step, ToolStep)]
    assert [error["code"] for error in errors] == ["ARGUMENT_ERROR", "INTERNAL_ERROR"]
    assert "no such city" in errors[0]["message"]
    assert "hunter2" not in provider.seen[1].body.decode()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error_reply(408), "request_timeout"),
        (error_reply(429), "rate_limited"),
        (error_reply(500), "server_error"),
        (error_reply(502), "bad_gateway"),
        (error_reply(503), "unavailable"),
        (error_reply(504), "gateway_timeout"),
        (error_reply(529), "overloaded"),
        (json_reply({"error": {"code": 502, "message": "upstream down"}}), "bad_gateway"),
        (ScriptedReply(raw=b"", ending=ConnectionEnd.CLOSE), "disconnected"),
        (ScriptedReply(raw=b"", ending=ConnectionEnd.RESET), "connection_reset"),
    ],
)
def test_drive_retries_a_transient_failure_and_records_each_attempt(
    provider: ScriptedServer, answer: ScriptedReply, code: str
) -> None:
    provider.set_script(answer, text_reply("Rain."))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes)
    assert loop_result.end is EndReason.FINAL
    assert notes.codes == [code, ""]
    assert [(step.attempt, step.retry_reason) for step in notes.exchanges] == [(1, ""), (2, code)]
    assert notes.reserved == 2
    assert len(notes.waits) == 1
    assert provider.seen[0].body == provider.seen[1].body


@pytest.mark.parametrize(
    ("answer", "code", "infrastructure"),
    [
        (error_reply(400, "bad"), "request_rejected", False),
        (error_reply(401, "bad key"), "authentication", True),
        (error_reply(402, "no credit"), "payment_required", True),
        (error_reply(403, "not yours"), "forbidden", True),
        (error_reply(403, "SAFETY_CHECK_TYPE_BIO"), "content_refused", False),
        (error_reply(404, "no such model"), "not_found", True),
        (error_reply(500, "The model produced output that does not match the expected format"), "model_format", False),
        (error_reply(500, "Failed to parse tools: x"), "request_rejected_as_500", False),
        (ScriptedReply(307, {"location": "/elsewhere"}), "redirect_refused", True),
        (ScriptedReply(200, {"content-type": "text/html"}, b"<html>Sign in</html>"), "not_an_answer", True),
        (ScriptedReply(200, {}, b""), "not_an_answer", True),
        (ScriptedReply(200, {}, b"[" * 100_000), "not_an_answer", True),
        (ScriptedReply(200, {}, b'{"a":' * 100_000), "not_an_answer", True),
        (json_reply({}), "malformed_answer", False),
        (ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.RESET), "answer_cut", False),
    ],
)
def test_drive_sends_a_request_with_permanent_failure_once(
    provider: ScriptedServer, answer: ScriptedReply, code: str, infrastructure: bool
) -> None:
    provider.set_script(answer, text_reply("a second sample"))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes)
    assert loop_result.end is EndReason.PROVIDER_ERROR
    assert loop_result.error is not None
    assert (loop_result.error.code, loop_result.error.infrastructure) == (code, infrastructure)
    assert notes.codes == [code]
    assert len(provider.seen) == 1


def test_drive_stops_retrying_at_the_endpoints_max_attempts(provider: ScriptedServer) -> None:
    provider.set_script(*[error_reply(503)] * 9)
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(max_attempts=4), notes)
    assert loop_result.end is EndReason.PROVIDER_ERROR
    assert notes.codes == ["unavailable"] * 4
    assert len(notes.waits) == 3


def test_drive_waits_as_long_as_retry_after_says(provider: ScriptedServer) -> None:
    provider.set_script(replace(error_reply(429), headers={"retry-after": "7"}), text_reply("Rain."))
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes)
    assert notes.waits == [7.0]


def test_drive_keeps_nul_and_lone_surrogates(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("\0 and \ud800"))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes)
    assert loop_result.final_text == "\0 and \ud800"


def test_drive_without_tool_support_goes_on_without_tools(provider: ScriptedServer) -> None:
    provider.set_script(error_reply(404, "No endpoints found that support tool use."), text_reply("Rain."))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, build_plan(tool_use_mode="relaxed", fallback_retry_count=1))
    assert loop_result.end is EndReason.FINAL
    assert notes.codes == ["tools_unsupported", ""]
    assert "tools" not in provider.seen[1].json()


def test_drive_with_spent_budget_ends_before_the_request(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(OSLO_CALL), text_reply("never asked for"))
    notes = TrialNotes(allowed=1)
    loop_result = drive_trial(provider.endpoint(), notes)
    assert loop_result.end is EndReason.BUDGET_SPENT
    assert len(provider.seen) == 1
    assert len(loop_result.turns[0].results) == 1


def test_drive_deadline_keeps_the_partial_answer(provider: ScriptedServer) -> None:
    partial_reply = ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.HANG)
    provider.set_script(tool_call_reply(OSLO_CALL), partial_reply)
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(timeouts=Timeouts(deadline=1.0)), notes)
    assert loop_result.end is EndReason.DEADLINE_EXCEEDED
    assert notes.codes == ["", "deadline"]
    assert (notes.exchanges[1].status, notes.exchanges[1].response_body) == (200, b'{"choices": [')
    assert len(loop_result.turns[0].results) == 1


def test_drive_deadline_includes_waits_between_attempts(provider: ScriptedServer) -> None:
    provider.set_script(replace(error_reply(429), headers={"retry-after": "60"}), text_reply("too late"))
    notes = TrialNotes(waits_for_real=True)
    loop_result = drive_trial(provider.endpoint(timeouts=Timeouts(deadline=0.3)), notes)
    assert loop_result.end is EndReason.DEADLINE_EXCEEDED
    assert notes.codes == ["rate_limited"]


def test_drive_deadline_excludes_waits_at_the_gate(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(OSLO_CALL), text_reply("Rain."))
    notes = TrialNotes(gate_seconds=1.5)
    loop_result = drive_trial(provider.endpoint(timeouts=Timeouts(deadline=1.4)), notes)
    assert (loop_result.end, notes.reserved) == (EndReason.FINAL, 2)


def test_drive_after_a_wait_at_the_gate_still_has_a_deadline(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.HANG))
    notes = TrialNotes(gate_seconds=0.2)
    loop_result = drive_trial(provider.endpoint(timeouts=Timeouts(deadline=1.0)), notes)
    assert loop_result.end is EndReason.DEADLINE_EXCEEDED
    assert notes.codes == ["deadline"]


def test_drive_cancelled_at_the_gate_sends_nothing(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("never asked for"))
    notes = TrialNotes(gate_seconds=50)
    loop_result = drive_trial(provider.endpoint(), notes, cancel_at=notes.waits_at_gate)
    assert loop_result.end is EndReason.CANCELLED
    assert provider.seen == []


def test_drive_cancelled_in_flight_keeps_the_partial_answer(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.HANG))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, cancel_at=notes.has_received)
    assert loop_result.end is EndReason.CANCELLED
    assert notes.codes == ["cancelled"]
    assert notes.exchanges[0].response_body == b'{"choices": ['


def test_drive_cancelled_during_back_off_ends(provider: ScriptedServer) -> None:
    provider.set_script(replace(error_reply(429), headers={"retry-after": "60"}))
    notes = TrialNotes(waits_for_real=True)
    loop_result = drive_trial(provider.endpoint(), notes, cancel_at=notes.waits_long)
    assert loop_result.end is EndReason.CANCELLED
    assert notes.codes == ["rate_limited"]


def test_drive_of_stopped_worker_records_the_partial_step_and_raises(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.HANG))
    notes = TrialNotes()
    with pytest.raises(asyncio.CancelledError):
        drive_trial(provider.endpoint(), notes, stop_at=notes.has_received)
    (step,) = notes.exchanges
    assert step.error is not None
    assert (step.error.code, step.response_body) == ("cancelled", b'{"choices": [')
    assert "worker was stopped" in step.error.message


def test_drive_cancelled_before_the_start_sends_nothing(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("never asked for"))
    loop_result = drive_trial(provider.endpoint(), TrialNotes(), cancel_at=lambda: True)
    assert loop_result.end is EndReason.CANCELLED
    assert provider.seen == []


def test_drive_with_failing_listener_records_every_step(provider: ScriptedServer) -> None:
    class FailingListener(list[Event]):
        def append(self, event: Event) -> None:
            raise RuntimeError("listener broke")

    provider.set_script(tool_call_reply(OSLO_CALL), text_reply("Rain."))
    notes = TrialNotes(events=FailingListener())
    assert drive_trial(provider.endpoint(), notes).end is EndReason.FINAL
    assert len(notes.steps) == 3


def test_drive_with_failing_recorder_raises_its_error(provider: ScriptedServer) -> None:
    class FullRecorder(TrialNotes):
        def record(self, step: ExchangeStep | ToolStep) -> None:
            if isinstance(step, ToolStep):
                raise OSError("disk full")

    provider.set_script(tool_call_reply(OSLO_CALL), text_reply("Rain."))
    with pytest.raises(OSError, match="disk full"):
        drive_trial(provider.endpoint(), FullRecorder())


def test_drive_masks_a_repeated_key_in_steps_result_and_events(provider: ScriptedServer) -> None:
    key = "sk-secret-1234"
    provider.set_script(chat_reply({"content": f"Your key is {key}."}, model=key))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(key=key), notes)
    assert key not in repr((notes.steps, loop_result, notes.events))
    assert loop_result.final_text == "Your key is **************."
