"""Driver of the loop: it sends requests, runs tools, records every step and stops on time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import (
    Ask,
    EmitEvent,
    Event,
    ExchangeError,
    Execute,
    FailedExchange,
    LoopResult,
    Outcome,
    StopReason,
    StopRun,
    ToolResult,
)
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.run import Loop, LoopPlan, run_loop
from toolbench.engine.types import JsonObject, Message, Turn
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.step_log import Attempt, StepLog
from toolbench.providers.driver.step_records import Gate, Recorder
from toolbench.providers.driver.tool_execution import CallTool, run_calls
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_codes import build_exchange_error, classify_unreadable
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.http.request_template import build_endpoint_masker
from toolbench.providers.http.retry_delay import compute_wait_seconds
from toolbench.providers.masking.streamed_text import StreamMasker

TRUNCATED_CODES = ("stream_cut", "answer_cut")  # the answer had begun, so sending again gives a second sample


class TrialStoppedError(Exception):
    """Exception that ends a trial before its next request.

    The gate permits no further request, or the trial was cancelled.

    Attributes:
        reason: the stop reason with which the trial ends.
    """

    def __init__(self, reason: StopReason) -> None:
        self.reason = reason
        super().__init__(reason.value)


@light(frozen=True, slots=True)
class RunContext:
    """Endpoint, client, tools, gate, recorder and clock of one trial.

    Attributes:
        call_tool: takes name, arguments and call id; returns the value or an awaitable of it. It raises
            `ToolArgumentError` for wrong arguments.
        clock: returns seconds.
        cancelled: cancellation token; setting it ends the trial.
        emit: receives the loop's events; None if no events are needed.
    """

    endpoint: Endpoint
    client: HttpClient
    call_tool: CallTool
    gate: Gate
    recorder: Recorder
    clock: Callable[[], float]
    cancelled: CancellationToken
    emit: EmitEvent | None = None


async def drive(plan: LoopPlan, context: RunContext) -> LoopResult:
    """Run one trial to its end.

    The deadline, a cancellation and a stop by the gate are sent into the loop as `StopRun`. They are part of the
    result, not exceptions. An exchange that they interrupt is recorded. If they interrupt the tools of an answer, none
    of its calls is recorded. The deadline leaves out the time spent in the gate's `reserve`.

    Raises:
        asyncio.CancelledError: this task was cancelled.
        Exception: an error of the recorder or the gate, or an error of the transport that is not a network error.
    """
    timeout = asyncio.timeout(context.endpoint.timeouts.deadline)
    trial = _TrialRun(context, timeout)
    loop = run_loop(plan, trial.handle_event, is_brief=context.emit is None)
    try:
        async with timeout:
            with context.cancelled.expire_on_cancel(timeout):
                return trial.mask_result(await trial.run(loop))
    except TimeoutError:
        if not timeout.expired():
            raise
        return trial.mask_result(_stop_loop(loop, trial.find_stop_reason()))
    except TrialStoppedError as stop:
        return trial.mask_result(_stop_loop(loop, stop.reason))
    finally:
        trial.close()


def _stop_loop(loop: Loop, reason: StopReason) -> LoopResult:
    try:
        loop.send(StopRun(reason))
    except StopIteration as end:
        result: LoopResult = end.value
        return result
    raise RuntimeError("the loop continued after StopRun")


class _TrialRun:
    """One running trial.

    Tool steps are recorded from the loop's events, which also report refused calls, although these are never run.
    """

    def __init__(self, context: RunContext, timeout: asyncio.Timeout) -> None:
        self._context = context
        self._timeout = timeout
        self._log = StepLog(context.recorder, context.clock)
        self._unlogged_results: list[tuple[int, ToolResult]] = []  # (turn, result)
        self._tool_start_ms: dict[str, float] = {}  # by call id
        self._current_exchange: Exchange | None = None  # source of streamed events
        self._attempt_number = 1
        self._masker = build_endpoint_masker(context.endpoint)
        self._stream_masker = StreamMasker(self._masker)

    def handle_event(self, event: Event) -> None:
        """Emit an event of the loop; note tool results and the progress of a streamed answer.

        The parts of a streamed answer are masked and get the number of their attempt. Parts that
        `_decode_masked_body` decodes a second time are ignored.
        """
        if event.type == "llm_delta":
            if self._current_exchange is None or self._current_exchange.on_chunk is None:
                return
            self._current_exchange.record_progress(has_complete_call=bool(event.data.get("closed")))
            if self._context.emit is not None:
                self._emit_delta(event.turn, self._stream_masker.mask(event.data))
            return
        if event.type == "tool_call_end":
            self._unlogged_results.append((event.turn, event.data["result"]))
        if self._context.emit is not None:
            self._context.emit(event)

    def _emit_delta(self, turn: int, data: JsonObject) -> None:
        if self._context.emit is not None:
            self._context.emit(Event("llm_delta", turn, {**data, "attempt": self._attempt_number}))

    def _emit_held_text(self, turn: int) -> None:
        """Emit the text that the masker still holds back. Call it at the end of an attempt."""
        for data in self._stream_masker.flush():
            self._emit_delta(turn, data)

    def find_stop_reason(self) -> StopReason:
        """Return why the timeout expired: a cancellation or the deadline."""
        return StopReason.CANCELLED if self._context.cancelled.is_set() else StopReason.DEADLINE

    async def run(self, loop: Loop) -> LoopResult:
        """Carry out the loop's operations until it returns its result.

        Raises:
            TrialStoppedError: the gate stopped the trial, or the run was cancelled.
        """
        try:
            operation = next(loop)
            while True:
                response = await (self._ask(operation) if isinstance(operation, Ask) else self._execute(operation))
                try:
                    operation = loop.send(response)
                finally:
                    self._log_results()
        except StopIteration as end:
            result: LoopResult = end.value
            return result

    def close(self) -> None:
        """Drop the last exchange.

        It refers to the decoder of a stream, and the decoder to this object: this cycle would keep the exchange in
        memory until a garbage collection.
        """
        self._current_exchange = None

    def mask_result(self, result: LoopResult) -> LoopResult:
        """Return the result with secrets masked in the final text and message.

        Each answer is masked already, but text that is composed of several answers may hold a secret that none of them
        holds.
        """
        final_text, message = self._masker.mask_value((result.final_text, result.message))
        is_unchanged = final_text is result.final_text and message is result.message
        return result if is_unchanged else replace(result, final_text=final_text, message=message)

    async def _ask(self, ask: Ask) -> Turn | FailedExchange:
        """Send a request, and again while `_find_retry_reason` gives a reason; return the answer or the last error.

        Raises:
            TrialStoppedError: the gate stopped the trial, or the run was cancelled.
        """
        number, backoff_ms, reason = 1, 0.0, ""
        while True:
            if self._context.cancelled.is_set():
                raise TrialStoppedError(StopReason.CANCELLED)
            await self._pass_gate()
            attempt = Attempt(ask.request, number, self._log.now_ms(), backoff_ms, reason)
            exchange, answer = await self._send_attempt(ask, attempt)
            reason = self._find_retry_reason(ask, number, answer)
            if not reason:
                return answer if isinstance(answer, Turn) else FailedExchange(answer)
            number, backoff_ms = number + 1, await self._back_off(number, exchange)

    async def _pass_gate(self) -> None:
        """Wait until the gate permits a request.

        The deadline is postponed by the duration of this wait, because the model does not cause it.

        Raises:
            TrialStoppedError: the gate stopped the trial, or the run was cancelled.
        """
        loop, deadline = asyncio.get_running_loop(), self._timeout.when()
        started_at = loop.time()
        if not self._timeout.expired():
            self._timeout.reschedule(None)
        await self._context.gate.reserve()
        if self._context.cancelled.is_set():
            raise TrialStoppedError(StopReason.CANCELLED)
        if deadline is not None and not self._timeout.expired():
            self._timeout.reschedule(deadline + loop.time() - started_at)

    def _find_retry_reason(self, ask: Ask, number: int, answer: Turn | ExchangeError) -> str:
        """Return the error code for which the request is sent again after attempt `number`, "" if it is not.

        A second sample of an answer that broke off is requested only if the policy allows it (`truncation_retries`).
        """
        code = answer.code if isinstance(answer, ExchangeError) else "stream_cut" if answer.is_truncated else ""
        if code in TRUNCATED_CODES and number <= ask.request.truncation_retries:
            return code
        is_retryable = isinstance(answer, ExchangeError) and answer.retryable
        return code if is_retryable and number < self._context.endpoint.max_attempts else ""

    async def _back_off(self, number: int, exchange: Exchange) -> float:
        """Wait after attempt `number` by means of the gate; return the wait in milliseconds."""
        before_ms = self._log.now_ms()
        await self._context.gate.back_off(compute_wait_seconds(number, exchange.response_headers))
        return self._log.now_ms() - before_ms

    async def _send_attempt(self, ask: Ask, attempt: Attempt) -> tuple[Exchange, Turn | ExchangeError]:
        """Send one attempt and record it, also if it is interrupted.

        A streamed answer is decoded while it arrives.

        Returns:
            The exchange, and its answer or error with secrets masked.
        """
        exchange = self._current_exchange = self._context.client.build_exchange(
            self._context.endpoint, ask.request.path, ask.request.body
        )
        self._attempt_number = attempt.number
        self._stream_masker = StreamMasker(exchange.template.masker)
        if ask.request.is_streamed:
            exchange.on_chunk = ask.decoder.feed
        try:
            await self._context.client.send(exchange)
        except asyncio.CancelledError:
            partial = _take_partial_message(ask, exchange)
            self._emit_held_text(ask.request.turn)
            self._log.record_exchange(attempt, exchange, self._build_interruption_error(exchange), partial)
            raise
        error = exchange.find_error()
        partial = _take_partial_message(ask, exchange) if error else {}
        answer = _read_refused_call(ask, error) if error else _decode_answer(ask, exchange)
        self._emit_held_text(ask.request.turn)
        return exchange, self._log.record_exchange(attempt, exchange, answer, partial)

    def _build_interruption_error(self, exchange: Exchange) -> ExchangeError:
        """Build the error of an interrupted exchange: the timeout expired, or this task is being cancelled."""
        if self._timeout.expired():
            return build_exchange_error(self.find_stop_reason().value, status=exchange.status)
        return build_exchange_error(
            "cancelled",
            "The worker was stopped, or the client of the gateway disconnected, while the request was under way.",
            status=exchange.status,
        )

    async def _execute(self, operation: Execute) -> tuple[Outcome, ...]:
        outcomes = self._masker.mask_value(await run_calls(operation, self._context.call_tool, self._log.now_ms))
        for call, outcome in zip(operation.calls, outcomes, strict=True):
            self._tool_start_ms[call.id] = outcome.started_ms
        return outcomes

    def _log_results(self) -> None:
        for turn, result in self._unlogged_results:
            self._log.record_tool(turn, result, self._tool_start_ms.get(result.call.id, self._log.now_ms()))
        self._unlogged_results.clear()


def _decode_answer(ask: Ask, exchange: Exchange) -> Turn | ExchangeError:
    """Return the answer as a turn, or the error of a body that cannot be read.

    A stream was decoded while it arrived; any other body is decoded here.
    """
    if not ask.request.is_streamed:
        ask.decoder.feed(exchange.body)
    _decode_masked_body(ask, exchange)
    try:
        return ask.decoder.close()
    except MalformedAnswerError as error:
        return classify_unreadable(exchange.status, exchange.body, str(error))


def _read_refused_call(ask: Ask, error: ExchangeError) -> Turn | ExchangeError:
    """Read the model's output that an error quotes.

    Returns:
        The turn if the output can be read as one. Otherwise the error; if it has no hint, its hint says why the output
        cannot be read.
    """
    turn_or_reason = ask.parse_refused_answer(error.generation) if error.generation else ""
    if isinstance(turn_or_reason, Turn):
        return turn_or_reason
    return replace(error, hint=error.hint or turn_or_reason)


def _take_partial_message(ask: Ask, exchange: Exchange) -> Message:
    """Return the part of the message that arrived, {} if none did, and reset the decoder."""
    _decode_masked_body(ask, exchange)
    partial = ask.decoder.partial
    _reset_decoder(ask)
    return partial


def _decode_masked_body(ask: Ask, exchange: Exchange) -> None:
    """If a stream holds a secret, decode it again from its masked body.

    Without `on_chunk`, `_TrialRun.handle_event` does not emit the parts again.
    """
    if ask.request.is_streamed and exchange.has_secret:
        exchange.on_chunk = None
        _reset_decoder(ask)
        for chunk in exchange.iter_chunks():
            ask.decoder.feed(chunk)


def _reset_decoder(ask: Ask) -> None:
    with suppress(MalformedAnswerError):
        ask.decoder.close()
