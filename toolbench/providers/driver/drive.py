"""The one driver of the loop: it does what the loop asks for, writes down every step, and knows when to stop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from toolbench.engine.errors import MalformedAnswer
from toolbench.engine.events import (
    Ask,
    Emit,
    Ended,
    Event,
    ExchangeError,
    Execute,
    Failed,
    Outcome,
    Stop,
    StopReason,
    ToolResult,
)
from toolbench.engine.loop.loop import Loop, LoopPlan, run_loop
from toolbench.engine.messages import JsonObject, Message, Turn
from toolbench.engine.values import light
from toolbench.providers.driver.cancellation import Cancel
from toolbench.providers.driver.step_log import Attempt, StepLog
from toolbench.providers.driver.step_records import Gate, Recorder
from toolbench.providers.driver.tool_execution import CallTool, run_calls
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import Door
from toolbench.providers.http.error_codes import classify_unread, failure
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.http.request_template import masker_of
from toolbench.providers.http.retry_delay import wait_seconds
from toolbench.providers.masking.streamed_text import LiveMasker

CUT = ("stream_cut", "answer_cut")  # after the answer had begun: sending again is a second sample


class Stopped(Exception):
    """Raised by a gate that lets no further request through; the trial ends with this reason."""

    def __init__(self, reason: StopReason) -> None:
        self.reason = reason
        super().__init__(reason.value)


@light(frozen=True, slots=True)
class World:
    """All that one trial touches. `call_tool` takes name, arguments and call id and gives the value, or something to
    await for it; it refuses arguments with ToolArgumentError. `clock` gives seconds. `cancelled` is set by whoever
    wants the trial to end now."""

    endpoint: Endpoint
    door: Door
    call_tool: CallTool
    gate: Gate
    recorder: Recorder
    clock: Callable[[], float]
    cancelled: Cancel
    emit: Emit | None = None  # nobody listens


async def drive(plan: LoopPlan, world: World) -> Ended:
    """Runs one trial to its end. Every end is a value: the deadline, a cancel and a closed gate are sent into the
    loop as Stop, after what was under way has been recorded. Errors of the recorder and of the gate, and the task's
    own cancellation, pass through."""
    limit = asyncio.timeout(world.endpoint.timeouts.deadline)
    trial = _Trial(world, limit)
    loop = run_loop(plan, trial.listen, brief=world.emit is None)
    try:
        async with limit:
            with world.cancelled.ending(limit):
                return trial.masked(await trial.run(loop))
    except TimeoutError:
        if not limit.expired():
            raise
        return trial.masked(_stop(loop, trial.interruption()))
    except Stopped as stopped:
        return trial.masked(_stop(loop, stopped.reason))


def _stop(loop: Loop, reason: StopReason) -> Ended:
    try:
        loop.send(Stop(reason))
    except StopIteration as end:
        ended: Ended = end.value
        return ended
    raise RuntimeError("the loop went on after it was told to stop")


class _Trial:
    """One running trial. It hears of tool results from the loop's events, since refused calls never reach it."""

    def __init__(self, world: World, limit: asyncio.Timeout) -> None:
        self._world = world
        self._limit = limit
        self._log = StepLog(world.recorder, world.clock)
        self._results: list[tuple[int, ToolResult]] = []
        self._tools_started: dict[str, float] = {}
        self._open: Exchange | None = None  # whose pieces are heard
        self._attempt = 1
        self._masker = masker_of(world.endpoint)
        self._live = LiveMasker(self._masker)

    def listen(self, event: Event) -> None:
        """Passes events on; a piece of a streamed answer with the number of the attempt it belongs to."""
        if event.type == "llm_delta":
            if self._open is None or self._open.heard is None:
                return
            self._open.understood(call=bool(event.data.get("closed")))
            if self._world.emit is not None:
                self._tell_delta(event.turn, self._live.mask(event.data))
            return
        if event.type == "tool_call_end":
            self._results.append((event.turn, event.data["result"]))
        if self._world.emit is not None:
            self._world.emit(event)

    def _tell_delta(self, turn: int, data: JsonObject) -> None:
        if self._world.emit is not None:
            self._world.emit(Event("llm_delta", turn, {**data, "attempt": self._attempt}))

    def _tell_rest(self, turn: int) -> None:
        """Tells what was held back of an answer that is over."""
        for data in self._live.rest():
            self._tell_delta(turn, data)

    def interruption(self) -> StopReason:
        """Why the limit has passed."""
        return StopReason.CANCELLED if self._world.cancelled.is_set() else StopReason.DEADLINE

    async def run(self, loop: Loop) -> Ended:
        try:
            wanted = next(loop)
            while True:
                sent = await (self._ask(wanted) if isinstance(wanted, Ask) else self._execute(wanted))
                try:
                    wanted = loop.send(sent)
                finally:
                    self._log_results()
        except StopIteration as end:
            ended: Ended = end.value
            return ended

    def masked(self, ended: Ended) -> Ended:
        """What is told of the end, as a text that several answers make may hold what none of them does."""
        final_text, message = self._masker.mask_value((ended.final_text, ended.message))
        same = final_text is ended.final_text and message is ended.message
        return ended if same else replace(ended, final_text=final_text, message=message)

    async def _ask(self, ask: Ask) -> Turn | Failed:
        number, backoff_ms, reason = 1, 0.0, ""
        while True:
            if self._world.cancelled.is_set():
                raise Stopped(StopReason.CANCELLED)
            await self._world.gate.reserve()
            attempt = Attempt(ask.request, number, self._log.now_ms(), backoff_ms, reason)
            exchange, read = await self._exchange(ask, attempt)
            reason = self._reason_to_repeat(ask, number, read)
            if not reason:
                return read if isinstance(read, Turn) else Failed(read)
            number, backoff_ms = number + 1, await self._back_off(number, exchange)

    def _reason_to_repeat(self, ask: Ask, number: int, read: Turn | ExchangeError) -> str:
        """Why the request is sent again after attempt `number`; "" when it is not. Another sample of an answer that
        broke off is taken only where the policy allows it."""
        code = read.code if isinstance(read, ExchangeError) else "stream_cut" if read.cut else ""
        if code in CUT and number <= ask.request.cut_retries:
            return code
        retryable = isinstance(read, ExchangeError) and read.retryable
        return code if retryable and number < self._world.endpoint.max_attempts else ""

    async def _back_off(self, attempts: int, exchange: Exchange) -> float:
        """Waits through the gate; the milliseconds it took."""
        before = self._log.now_ms()
        await self._world.gate.back_off(wait_seconds(attempts, exchange.response_headers))
        return self._log.now_ms() - before

    async def _exchange(self, ask: Ask, attempt: Attempt) -> tuple[Exchange, Turn | ExchangeError]:
        """One attempt, written down, also when it is cut off. A streamed answer is read while it comes."""
        exchange = self._open = self._world.door.open(self._world.endpoint, ask.request.path, ask.request.body)
        self._attempt = attempt.number
        self._live = LiveMasker(exchange.line.masker)
        if ask.request.stream:
            exchange.heard = ask.decoder.feed
        try:
            await self._world.door.carry(exchange)
        except asyncio.CancelledError:
            partial = _broken_off(ask, exchange)
            self._tell_rest(ask.request.turn)
            self._log.exchange(attempt, exchange, read=self._cut_off(exchange), partial=partial)
            raise
        error = exchange.error()
        partial = _broken_off(ask, exchange) if error else {}
        read = _refused(ask, error) if error else _read(ask, exchange)
        self._tell_rest(ask.request.turn)
        return exchange, self._log.exchange(attempt, exchange, read=read, partial=partial)

    def _cut_off(self, exchange: Exchange) -> ExchangeError:
        """Why an exchange was cut off: by the trial's limit, or because this task is being stopped."""
        if self._limit.expired():
            return failure(self.interruption().value, status=exchange.status)
        return failure("cancelled", "The worker was stopped while the request was under way.", status=exchange.status)

    async def _execute(self, wanted: Execute) -> tuple[Outcome, ...]:
        outcomes = self._masker.mask_value(await run_calls(wanted, self._world.call_tool, self._log.now_ms))
        for call, outcome in zip(wanted.calls, outcomes, strict=True):
            self._tools_started[call.id] = outcome.started_ms
        return outcomes

    def _log_results(self) -> None:
        for turn, result in self._results:
            self._log.tool(turn, result, self._tools_started.get(result.call.id, self._log.now_ms()))
        self._results.clear()


def _read(ask: Ask, exchange: Exchange) -> Turn | ExchangeError:
    """The answer as a turn. A stream was fed as it came, any other body is fed in one piece."""
    if not ask.request.stream:
        ask.decoder.feed(exchange.body)
    _without_secrets(ask, exchange)
    try:
        return ask.decoder.close()
    except MalformedAnswer as error:
        return classify_unread(exchange.status, exchange.body, str(error))


def _refused(ask: Ask, error: ExchangeError) -> Turn | ExchangeError:
    """What becomes of an error: the turn that the text it quotes makes, else the error, with a hint."""
    read = ask.read_refused(error.generation) if error.generation else ""
    return replace(error, hint=error.hint or read) if isinstance(read, str) else read


def _broken_off(ask: Ask, exchange: Exchange) -> Message:
    """The message as far as it came; the decoder is empty then."""
    _without_secrets(ask, exchange)
    partial = ask.decoder.partial
    _empty(ask)
    return partial


def _without_secrets(ask: Ask, exchange: Exchange) -> None:
    """Has a stream that holds a secret read again, masked; nobody hears it a second time."""
    if ask.request.stream and exchange.holds_secret:
        exchange.heard = None
        _empty(ask)
        for piece in exchange.pieces():
            ask.decoder.feed(piece)


def _empty(ask: Ask) -> None:
    with suppress(MalformedAnswer):
        ask.decoder.close()
