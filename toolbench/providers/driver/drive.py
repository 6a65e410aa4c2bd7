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
    """Error of a gate that permits no further request; the trial ends with `reason`."""

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
        cancelled: ends the trial once it is set.
        emit: receives the loop's events; None when no events are needed.
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

    The deadline, a cancellation and a stop by the gate are sent into the loop as `StopRun`, after the current step has
    been recorded. They are part of the result, not exceptions. Errors of the recorder and of the gate, and the
    cancellation of this task, are raised.
    """
    limit = asyncio.timeout(context.endpoint.timeouts.deadline)
    trial = _TrialRun(context, limit)
    loop = run_loop(plan, trial.handle_event, brief=context.emit is None)
    try:
        async with limit:
            with context.cancelled.expire_on_cancel(limit):
                return trial.mask_ended(await trial.run(loop))
    except TimeoutError:
        if not limit.expired():
            raise
        return trial.mask_ended(_stop_loop(loop, trial.find_stop_reason()))
    except TrialStoppedError as stopped:
        return trial.mask_ended(_stop_loop(loop, stopped.reason))


def _stop_loop(loop: Loop, reason: StopReason) -> LoopResult:
    try:
        loop.send(StopRun(reason))
    except StopIteration as end:
        ended: LoopResult = end.value
        return ended
    raise RuntimeError("the loop went on after it was told to stop")


class _TrialRun:
    """One running trial.

    It takes tool results from the loop's events, because refused calls are never executed.
    """

    def __init__(self, context: RunContext, limit: asyncio.Timeout) -> None:
        self._world = context
        self._limit = limit
        self._log = StepLog(context.recorder, context.clock)
        self._results: list[tuple[int, ToolResult]] = []
        self._tools_started: dict[str, float] = {}
        self._current_exchange: Exchange | None = None  # source of streamed events
        self._attempt = 1
        self._masker = build_endpoint_masker(context.endpoint)
        self._stream_masker = StreamMasker(self._masker)

    def handle_event(self, event: Event) -> None:
        """Pass an event on; a part of a streamed answer is masked and gets the number of its attempt."""
        if event.type == "llm_delta":
            if self._current_exchange is None or self._current_exchange.on_chunk is None:
                return
            self._current_exchange.record_progress(call=bool(event.data.get("closed")))
            if self._world.emit is not None:
                self._emit_delta(event.turn, self._stream_masker.mask(event.data))
            return
        if event.type == "tool_call_end":
            self._results.append((event.turn, event.data["result"]))
        if self._world.emit is not None:
            self._world.emit(event)

    def _emit_delta(self, turn: int, data: JsonObject) -> None:
        if self._world.emit is not None:
            self._world.emit(Event("llm_delta", turn, {**data, "attempt": self._attempt}))

    def _emit_held_back(self, turn: int) -> None:
        """Emit what the masker held back of an answer that is over."""
        for data in self._stream_masker.flush():
            self._emit_delta(turn, data)

    def find_stop_reason(self) -> StopReason:
        """Return why the time limit expired: a cancellation or the deadline."""
        return StopReason.CANCELLED if self._world.cancelled.is_set() else StopReason.DEADLINE

    async def run(self, loop: Loop) -> LoopResult:
        """Carry out the loop's commands until it returns its result."""
        try:
            operation = next(loop)
            while True:
                sent = await (self._ask(operation) if isinstance(operation, Ask) else self._execute(operation))
                try:
                    operation = loop.send(sent)
                finally:
                    self._log_results()
        except StopIteration as end:
            ended: LoopResult = end.value
            return ended

    def mask_ended(self, ended: LoopResult) -> LoopResult:
        """Return the result with secrets masked in the final text and message.

        Each answer is masked already, but the text composed of several answers may hold a secret that none of them
        holds.
        """
        final_text, message = self._masker.mask_value((ended.final_text, ended.message))
        same = final_text is ended.final_text and message is ended.message
        return ended if same else replace(ended, final_text=final_text, message=message)

    async def _ask(self, ask: Ask) -> Turn | FailedExchange:
        number, backoff_ms, reason = 1, 0.0, ""
        while True:
            if self._world.cancelled.is_set():
                raise TrialStoppedError(StopReason.CANCELLED)
            await self._world.gate.reserve()
            attempt = Attempt(ask.request, number, self._log.now_ms(), backoff_ms, reason)
            exchange, read = await self._exchange(ask, attempt)
            reason = self._find_retry_reason(ask, number, read)
            if not reason:
                return read if isinstance(read, Turn) else FailedExchange(read)
            number, backoff_ms = number + 1, await self._back_off(number, exchange)

    def _find_retry_reason(self, ask: Ask, number: int, read: Turn | ExchangeError) -> str:
        """Return why the request is sent again after attempt `number`, "" when it is not.

        Another sample of an answer that broke off is taken only where the policy allows it.
        """
        code = read.code if isinstance(read, ExchangeError) else "stream_cut" if read.cut else ""
        if code in TRUNCATED_CODES and number <= ask.request.cut_retries:
            return code
        retryable = isinstance(read, ExchangeError) and read.retryable
        return code if retryable and number < self._world.endpoint.max_attempts else ""

    async def _back_off(self, attempts: int, exchange: Exchange) -> float:
        """Wait through the gate and return the milliseconds that it took."""
        before = self._log.now_ms()
        await self._world.gate.back_off(compute_wait_seconds(attempts, exchange.response_headers))
        return self._log.now_ms() - before

    async def _exchange(self, ask: Ask, attempt: Attempt) -> tuple[Exchange, Turn | ExchangeError]:
        """Send one attempt and record it, also when it is interrupted.

        A streamed answer is read while it arrives.
        """
        exchange = self._current_exchange = self._world.client.open(
            self._world.endpoint, ask.request.path, ask.request.body
        )
        self._attempt = attempt.number
        self._stream_masker = StreamMasker(exchange.template.masker)
        if ask.request.stream:
            exchange.on_chunk = ask.decoder.feed
        try:
            await self._world.client.send(exchange)
        except asyncio.CancelledError:
            partial = _take_partial_message(ask, exchange)
            self._emit_held_back(ask.request.turn)
            self._log.record_exchange(attempt, exchange, read=self._build_cut_off_error(exchange), partial=partial)
            raise
        error = exchange.error()
        partial = _take_partial_message(ask, exchange) if error else {}
        read = _resolve_error(ask, error) if error else _parse_answer(ask, exchange)
        self._emit_held_back(ask.request.turn)
        return exchange, self._log.record_exchange(attempt, exchange, read=read, partial=partial)

    def _build_cut_off_error(self, exchange: Exchange) -> ExchangeError:
        """Return why an exchange was interrupted: the trial's limit expired, or this task is being cancelled."""
        if self._limit.expired():
            return build_exchange_error(self.find_stop_reason().value, status=exchange.status)
        return build_exchange_error(
            "cancelled", "The worker was stopped while the request was under way.", status=exchange.status
        )

    async def _execute(self, operation: Execute) -> tuple[Outcome, ...]:
        outcomes = self._masker.mask_value(await run_calls(operation, self._world.call_tool, self._log.now_ms))
        for call, outcome in zip(operation.calls, outcomes, strict=True):
            self._tools_started[call.id] = outcome.started_ms
        return outcomes

    def _log_results(self) -> None:
        for turn, result in self._results:
            self._log.record_tool(turn, result, self._tools_started.get(result.call.id, self._log.now_ms()))
        self._results.clear()


def _parse_answer(ask: Ask, exchange: Exchange) -> Turn | ExchangeError:
    """Return the answer as a turn. A stream was read as it came; any other body is read here at once."""
    if not ask.request.stream:
        ask.decoder.feed(exchange.body)
    _decode_masked_body(ask, exchange)
    try:
        return ask.decoder.close()
    except MalformedAnswerError as error:
        return classify_unreadable(exchange.status, exchange.body, str(error))


def _resolve_error(ask: Ask, error: ExchangeError) -> Turn | ExchangeError:
    """Return the turn that the text quoted by an error makes, else the error with a hint."""
    read = ask.read_refused(error.generation) if error.generation else ""
    return replace(error, hint=error.hint or read) if isinstance(read, str) else read


def _take_partial_message(ask: Ask, exchange: Exchange) -> Message:
    """Return the message as far as it came, and empty the decoder."""
    _decode_masked_body(ask, exchange)
    partial = ask.decoder.partial
    _reset_decoder(ask)
    return partial


def _decode_masked_body(ask: Ask, exchange: Exchange) -> None:
    """Decode a stream that holds a secret again from its masked body, without emitting it again."""
    if ask.request.stream and exchange.has_secret:
        exchange.on_chunk = None
        _reset_decoder(ask)
        for piece in exchange.iter_chunks():
            ask.decoder.feed(piece)


def _reset_decoder(ask: Ask) -> None:
    with suppress(MalformedAnswerError):
        ask.decoder.close()
