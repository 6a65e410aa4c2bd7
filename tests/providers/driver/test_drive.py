"""The one driver, on the real loop and real sockets."""

import asyncio
from dataclasses import replace

import pytest

from tests.providers.drives import OSLO, Notes, driven, plan
from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import End, Event
from toolbench.engine.messages import JsonObject
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Timeouts
from toolbench.providers.scripted_server import (
    Answer,
    Ending,
    ScriptedProvider,
    calls,
    completion,
    fails,
    json_answer,
    says,
)


def test_a_trial_runs_to_its_end_and_every_step_is_written_down(provider: ScriptedProvider) -> None:
    provider.plays(calls(OSLO), says("Rain."))
    notes = Notes()
    ended = driven(provider.endpoint(key="sk-secret-1234"), notes)
    assert (ended.end, ended.final_text) == (End.FINAL, "Rain.")
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
    assert tool.result.executed
    assert tool.result.content in provider.seen[1].json()["messages"][-1]["content"]
    assert first.started_ms <= tool.started_ms <= notes.exchanges[1].started_ms


def test_a_call_that_may_not_run_is_a_step_too(provider: ScriptedProvider) -> None:
    provider.plays(calls(("unknown_tool", {}), OSLO), says("Rain."))
    notes = Notes()
    driven(provider.endpoint(), notes)
    tools = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert [(step.result.call.name, step.result.executed) for step in tools] == [
        ("unknown_tool", False),
        ("get_weather", True),
    ]


def test_refused_arguments_are_explained_and_other_failures_only_named(provider: ScriptedProvider) -> None:
    def refusing(name: str, arguments: JsonObject, call_id: str) -> object:
        raise ToolArgumentError("no such city") if call_id == "call_1" else RuntimeError("password=hunter2")

    provider.plays(calls(OSLO, OSLO), says("Sorry."))
    notes = Notes(tool=refusing)
    driven(provider.endpoint(), notes)
    errors = [step.result.envelope.errors[0] for step in notes.steps if isinstance(step, ToolStep)]
    assert [error["code"] for error in errors] == ["ARGUMENT_ERROR", "INTERNAL_ERROR"]
    assert "no such city" in errors[0]["message"]
    assert "hunter2" not in provider.seen[1].body.decode()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (fails(408), "request_timeout"),
        (fails(429), "rate_limited"),
        (fails(500), "server_error"),
        (fails(502), "bad_gateway"),
        (fails(503), "unavailable"),
        (fails(504), "gateway_timeout"),
        (fails(529), "overloaded"),
        (json_answer({"error": {"code": 502, "message": "upstream down"}}), "bad_gateway"),
        (Answer(raw=b"", ending=Ending.CLOSE), "disconnected"),
        (Answer(raw=b"", ending=Ending.RESET), "connection_reset"),
    ],
)
def test_what_may_pass_is_sent_again_and_each_attempt_is_a_step(
    provider: ScriptedProvider, answer: Answer, code: str
) -> None:
    provider.plays(answer, says("Rain."))
    notes = Notes()
    ended = driven(provider.endpoint(), notes)
    assert ended.end is End.FINAL
    assert notes.codes == [code, ""]
    assert [(step.attempt, step.retry_reason) for step in notes.exchanges] == [(1, ""), (2, code)]
    assert notes.reserved == 2
    assert len(notes.waits) == 1
    assert provider.seen[0].body == provider.seen[1].body


@pytest.mark.parametrize(
    ("answer", "code", "infrastructure"),
    [
        (fails(400, "bad"), "request_rejected", False),
        (fails(401, "bad key"), "authentication", True),
        (fails(402, "no credit"), "payment_required", True),
        (fails(403, "not yours"), "forbidden", True),
        (fails(403, "SAFETY_CHECK_TYPE_BIO"), "content_refused", False),
        (fails(404, "no such model"), "not_found", True),
        (fails(500, "The model produced output that does not match the expected format"), "model_format", False),
        (fails(500, "Failed to parse tools: x"), "request_rejected_as_500", False),
        (Answer(307, {"location": "/elsewhere"}), "redirect_refused", True),
        (Answer(200, {"content-type": "text/html"}, b"<html>Sign in</html>"), "not_an_answer", True),
        (Answer(200, {}, b""), "not_an_answer", True),
        (Answer(200, {}, b"[" * 100_000), "not_an_answer", True),
        (Answer(200, {}, b'{"a":' * 100_000), "not_an_answer", True),
        (json_answer({}), "malformed_answer", False),
        (Answer(body=b'{"choices": [', declared=100, ending=Ending.RESET), "answer_cut", False),
    ],
)
def test_what_will_not_pass_is_sent_once(
    provider: ScriptedProvider, answer: Answer, code: str, infrastructure: bool
) -> None:
    provider.plays(answer, says("a second sample"))
    notes = Notes()
    ended = driven(provider.endpoint(), notes)
    assert ended.end is End.PROVIDER_ERROR
    assert ended.error is not None
    assert (ended.error.code, ended.error.infrastructure) == (code, infrastructure)
    assert notes.codes == [code]
    assert len(provider.seen) == 1


def test_attempts_end_at_the_endpoints_limit(provider: ScriptedProvider) -> None:
    provider.plays(*[fails(503)] * 9)
    notes = Notes()
    ended = driven(provider.endpoint(max_attempts=4), notes)
    assert ended.end is End.PROVIDER_ERROR
    assert notes.codes == ["unavailable"] * 4
    assert len(notes.waits) == 3


def test_the_wait_is_what_the_provider_asks_for(provider: ScriptedProvider) -> None:
    provider.plays(replace(fails(429), headers={"retry-after": "7"}), says("Rain."))
    notes = Notes()
    driven(provider.endpoint(), notes)
    assert notes.waits == [7.0]


def test_nul_and_lone_surrogates_come_through_unharmed(provider: ScriptedProvider) -> None:
    provider.plays(says("\0 and \ud800"))
    notes = Notes()
    ended = driven(provider.endpoint(), notes)
    assert ended.final_text == "\0 and \ud800"


def test_without_tool_support_the_loop_hears_of_it(provider: ScriptedProvider) -> None:
    provider.plays(fails(404, "No endpoints found that support tool use."), says("Rain."))
    notes = Notes()
    ended = driven(provider.endpoint(), notes, plan(tool_use_mode="relaxed", fallback_retry_count=1))
    assert ended.end is End.FINAL
    assert notes.codes == ["tools_unsupported", ""]
    assert "tools" not in provider.seen[1].json()


def test_a_spent_budget_ends_the_trial_before_the_request(provider: ScriptedProvider) -> None:
    provider.plays(calls(OSLO), says("never asked for"))
    notes = Notes(allowed=1)
    ended = driven(provider.endpoint(), notes)
    assert ended.end is End.BUDGET_SPENT
    assert len(provider.seen) == 1
    assert len(ended.turns[0].results) == 1


def test_the_deadline_keeps_the_half_received_answer(provider: ScriptedProvider) -> None:
    half = Answer(body=b'{"choices": [', declared=100, ending=Ending.HANG)
    provider.plays(calls(OSLO), half)
    notes = Notes()
    ended = driven(provider.endpoint(timeouts=Timeouts(deadline=1.0)), notes)
    assert ended.end is End.DEADLINE_EXCEEDED
    assert notes.codes == ["", "deadline"]
    assert (notes.exchanges[1].status, notes.exchanges[1].response_body) == (200, b'{"choices": [')
    assert len(ended.turns[0].results) == 1


def test_the_deadline_counts_the_waiting_between_attempts(provider: ScriptedProvider) -> None:
    provider.plays(replace(fails(429), headers={"retry-after": "60"}), says("too late"))
    notes = Notes(really_wait=True)
    ended = driven(provider.endpoint(timeouts=Timeouts(deadline=0.3)), notes)
    assert ended.end is End.DEADLINE_EXCEEDED
    assert notes.codes == ["rate_limited"]


def test_a_cancel_ends_what_is_in_flight_and_keeps_it(provider: ScriptedProvider) -> None:
    provider.plays(Answer(body=b'{"choices": [', declared=100, ending=Ending.HANG))
    notes = Notes()
    ended = driven(provider.endpoint(), notes, cancel_at=notes.has_received)
    assert ended.end is End.CANCELLED
    assert notes.codes == ["cancelled"]
    assert notes.exchanges[0].response_body == b'{"choices": ['


def test_a_cancel_ends_a_long_wait(provider: ScriptedProvider) -> None:
    provider.plays(replace(fails(429), headers={"retry-after": "60"}))
    notes = Notes(really_wait=True)
    ended = driven(provider.endpoint(), notes, cancel_at=notes.waits_long)
    assert ended.end is End.CANCELLED
    assert notes.codes == ["rate_limited"]


def test_a_stopped_worker_leaves_the_half_as_a_step_and_no_end(provider: ScriptedProvider) -> None:
    provider.plays(Answer(body=b'{"choices": [', declared=100, ending=Ending.HANG))
    notes = Notes()
    with pytest.raises(asyncio.CancelledError):
        driven(provider.endpoint(), notes, stop_at=notes.has_received)
    (step,) = notes.exchanges
    assert step.error is not None
    assert (step.error.code, step.response_body) == ("cancelled", b'{"choices": [')
    assert "worker was stopped" in step.error.message


def test_a_trial_cancelled_before_it_starts_sends_nothing(provider: ScriptedProvider) -> None:
    provider.plays(says("never asked for"))
    ended = driven(provider.endpoint(), Notes(), cancel_at=lambda: True)
    assert ended.end is End.CANCELLED
    assert provider.seen == []


def test_a_listener_that_fails_loses_no_step(provider: ScriptedProvider) -> None:
    class Deaf(list[Event]):
        def append(self, event: Event) -> None:
            raise RuntimeError("listener broke")

    provider.plays(calls(OSLO), says("Rain."))
    notes = Notes(events=Deaf())
    assert driven(provider.endpoint(), notes).end is End.FINAL
    assert len(notes.steps) == 3


def test_a_recorder_that_fails_is_heard(provider: ScriptedProvider) -> None:
    class Full(Notes):
        def record(self, step: ExchangeStep | ToolStep) -> None:
            if isinstance(step, ToolStep):
                raise OSError("disk full")

    provider.plays(calls(OSLO), says("Rain."))
    with pytest.raises(OSError, match="disk full"):
        driven(provider.endpoint(), Full())


def test_a_key_that_the_provider_repeats_reaches_neither_steps_nor_record(provider: ScriptedProvider) -> None:
    key = "sk-secret-1234"
    provider.plays(completion({"content": f"Your key is {key}."}, model=key))
    notes = Notes()
    ended = driven(provider.endpoint(key=key), notes)
    assert key not in repr((notes.steps, ended, notes.events))
    assert ended.final_text == "Your key is **************."
