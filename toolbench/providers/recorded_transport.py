"""Transport that replays a stored trial: no request is sent and no real time passes.

The loop and the driver run on a virtual clock, with responses, failures and stops from a recording.

A stored response is used if the model would see the same request as in the recording: the path is the same, and the
bodies are equal apart from masked secrets, or differ as JSON only in `UNSEEN_FIELDS`. These fields configure the server
and never reach the model. At the first request that differs otherwise the replay ends, because the model's answer to it
is unknown. `RecordedTransport._check_request` has the remaining conditions.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import dataclass, field
from selectors import DefaultSelector, SelectorKey
from typing import Any, TypeVar, TypeVarTuple

import httpx

from toolbench.engine.events import ExchangeError, StopReason
from toolbench.engine.policy.optional_parameters import REFUSAL_CODES
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.drive import TrialStoppedError
from toolbench.providers.driver.tool_execution import CallTool
from toolbench.providers.http.aiohttp_transport import DnsError, ServerDisconnectedError, TlsError
from toolbench.providers.http.error_codes import classify_response

UNSEEN_FIELDS = frozenset(
    {"parallel_tool_calls", "stream", "stream_options", "user", "metadata", "store", "service_tier"}
)
PARALLEL_FIELD = "parallel_tool_calls"
LOCAL_STOP_CODES = (StopReason.DEADLINE.value, StopReason.CANCELLED.value)  # codes of exchanges that Toolbench ended
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")  # stored bodies are decoded
_EXCEPTION_BY_CODE: dict[str, type[httpx.HTTPError]] = {
    "dns": DnsError,
    "tls": TlsError,
    "connect_timeout": httpx.ConnectTimeout,
    "connection_refused": httpx.ConnectError,
    "read_timeout": httpx.ReadTimeout,
    "disconnected": ServerDisconnectedError,
    "connection_reset": httpx.ReadError,
    "answer_cut": httpx.ReadError,
    "not_sendable": httpx.LocalProtocolError,
    "encoding_unreadable": httpx.DecodingError,
    "not_http": httpx.RemoteProtocolError,
}

Value = TypeVar("Value")
Arguments = TypeVarTuple("Arguments")


class NotRecordedError(Exception):
    """Failure of a replay that needs a response which the recording does not hold; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """One stored attempt of an exchange.

    Attributes:
        url: address of the request, with its query.
        request: body of the request.
        status: the HTTP status, None if no response head arrived.
        headers: headers of the response.
        body: body of the response, or the part of it that was kept.
        error: the error of the exchange, or None.
        chunks: sizes of the body's chunks in bytes, in the order received.
        call_count: number of calls in the answer.
        is_masked: whether secrets in the exchange are masked.
        is_truncated: whether the body is truncated.
        omitted_parameters: parameters that the request lacks because the endpoint was known to refuse them.
    """

    url: str
    request: bytes
    status: int | None
    headers: JsonObject
    body: bytes
    error: ExchangeError | None
    chunks: tuple[int, ...] = ()
    call_count: int = 0
    is_masked: bool = False
    is_truncated: bool = False
    omitted_parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recording:
    """One execution of one trial.

    Attributes:
        exchanges: the attempts in the order sent.
        stop_reason: reason why Toolbench stopped the trial, None if it did not.
        stopped_in_tools: whether Toolbench stopped the trial while tools ran.
        has_original_plan: whether the trial is replayed with its original plan. The truncated body of a failed exchange
            is then replayed as that failure. Any other truncated body ends the replay.
    """

    exchanges: tuple[StoredExchange, ...]
    stop_reason: StopReason | None = None
    stopped_in_tools: bool = False
    has_original_plan: bool = True


@dataclass(eq=False, slots=True)
class RecordedTransport(httpx.AsyncBaseTransport):
    """Transport that returns a recording's responses in order.

    It is also the trial's gate, and stops the trial as recorded.

    Attributes:
        recording: the execution to replay.
        cancelled: cancellation event of the trial.
        differing_fields: those of `UNSEEN_FIELDS` in which requests differed from the recording so far.
    """

    recording: Recording
    cancelled: asyncio.Event
    differing_fields: set[str] = field(default_factory=set)
    _position: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether every stored exchange has been used."""
        return self._position == len(self.recording.exchanges)

    async def reserve(self) -> None:
        """Permit the next request.

        Raises:
            TrialStoppedError: the recorded trial was stopped before it sent another request.
        """
        if self.is_exhausted and self.recording.stop_reason:
            raise TrialStoppedError(self.recording.stop_reason)

    async def back_off(self, seconds: float) -> None:
        """Return at once: a replay does not wait between attempts."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the next stored response.

        If Toolbench ended the recorded exchange, wait until the driver stops the trial.

        Raises:
            NotRecordedError: the recording has no response for this request.
            httpx.HTTPError: the stored exchange failed with this error before a response head arrived.
        """
        body = await request.aread()
        if self.is_exhausted:
            raise NotRecordedError("no further answer is stored")
        stored = self.recording.exchanges[self._position]
        self._check_request(stored, request.url.path, body)
        self._position += 1
        if stored.error and stored.error.code in LOCAL_STOP_CODES:
            await self._wait_for_stop(StopReason(stored.error.code))
        return self._build_response(stored)

    def wrap_tools(self, call_tool: CallTool) -> CallTool:
        """Return a function that runs tools with `call_tool`.

        If the recorded trial was stopped while tools ran, calls after the last stored exchange never return.
        """

        def call(name: str, arguments: JsonObject, call_id: str) -> object:
            reason = self.recording.stop_reason
            if reason and self.recording.stopped_in_tools and self.is_exhausted:
                return self._wait_for_stop(reason)
            return call_tool(name, arguments, call_id)

        return call

    def _check_request(self, stored: StoredExchange, path: str, body: bytes) -> None:
        """Check that the stored response is also the response to this request.

        Raises:
            NotRecordedError: this request could have another response, or the stored one is truncated.
        """
        if stored.request != body and not (stored.is_masked and _is_same_but_masked(stored.request, body)):
            differing = _find_differing_fields(stored.request, body)
            if visible_fields := sorted(differing - UNSEEN_FIELDS):
                raise NotRecordedError(f"the model would be shown another request ({', '.join(visible_fields)})")
            if PARALLEL_FIELD in differing and stored.call_count > 1:
                raise NotRecordedError(f"the answer has several calls, and {PARALLEL_FIELD} would differ")
            if differing and stored.error and stored.error.code in REFUSAL_CODES:
                raise NotRecordedError("the endpoint refused a request that differs from this one")
            if refused_fields := sorted(differing & stored.omitted_parameters):
                raise NotRecordedError(f"the endpoint refuses parameters of this request ({', '.join(refused_fields)})")
            self.differing_fields |= differing
        if not stored.url.partition("?")[0].endswith(path):
            raise NotRecordedError("the request would go to another path")
        if stored.is_truncated and not (self.recording.has_original_plan and stored.error):
            raise NotRecordedError("the stored answer is truncated")

    async def _wait_for_stop(self, reason: StopReason) -> None:
        """Wait until the driver stops the trial for this reason; for a cancellation, cancel the trial first."""
        if reason is StopReason.CANCELLED:
            self.cancelled.set()
        await asyncio.Event().wait()

    def _build_response(self, stored: StoredExchange) -> httpx.Response:
        exception = _find_exception(stored)
        if stored.status is None:
            raise exception or httpx.RemoteProtocolError("")
        headers = {name: str(value) for name, value in stored.headers.items() if name not in _BODY_HEADERS}
        return httpx.Response(stored.status, headers=headers, stream=_RecordedBody(stored, exception))


@dataclass(eq=False, slots=True)
class _RecordedBody(httpx.AsyncByteStream):
    """Stored body as a stream of the chunks in which it arrived.

    The stored exception, if any, is raised after the last chunk.
    """

    stored: StoredExchange
    exception: httpx.HTTPError | None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        start = 0
        for chunk_bytes in self.stored.chunks:
            yield self.stored.body[start : start + chunk_bytes]
            start += chunk_bytes
        if rest := self.stored.body[start:]:
            yield rest
        if self.exception:
            raise self.exception


def _find_exception(stored: StoredExchange) -> httpx.HTTPError | None:
    """Return the exception that ended the exchange.

    Returns:
        None if no exception ended it, or if the error follows from status and body.
    """
    error = stored.error
    if error is None or error.code not in _EXCEPTION_BY_CODE or (stored.status or 0) >= 300:
        return None
    if stored.status is not None:
        shown_error = classify_response(status=stored.status, headers={}, body=stored.body)
        if shown_error is not None and shown_error.code == error.code:
            return None
    return _EXCEPTION_BY_CODE[error.code](error.message)


def _is_same_but_masked(stored: bytes, body: bytes) -> bool:
    """Return whether the two bodies have the same length and differ only where the stored one has a star."""
    return len(stored) == len(body) and all(
        stored_byte in (byte, ord("*")) for stored_byte, byte in zip(stored, body, strict=True)
    )


def _find_differing_fields(stored: bytes, body: bytes) -> set[str]:
    """Return the top-level fields in which two bodies differ; {"body"} if one is not a JSON object."""
    before, after = _parse_fields(stored), _parse_fields(body)
    if before is None or after is None:
        return {"body"}
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def _parse_fields(body: bytes) -> JsonObject | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _VirtualTimeSelector(DefaultSelector):
    """Selector that moves the event loop's clock forward in place of waiting."""

    def __init__(self, advance_clock: Callable[[float], None]) -> None:
        super().__init__()
        self._advance_clock = advance_clock

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Move the clock by `timeout` seconds and return the events that are ready.

        Raises:
            RuntimeError: `timeout` is None, so the loop would wait for ever.
        """
        if timeout is None:
            raise RuntimeError("the replay would wait for ever")
        if timeout > 0:
            self._advance_clock(timeout)
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock stands still while tasks can run and jumps to the next scheduled time."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_VirtualTimeSelector(self._advance_clock))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Value], *args: *Arguments
    ) -> asyncio.Future[Value]:
        """Run the function at once in this thread, because this loop cannot wait for other threads."""
        future: asyncio.Future[Value] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _advance_clock(self, seconds: float) -> None:
        self._now += seconds


def run_in_virtual_time(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run the coroutine to its end in virtual time. Call it in a thread without a running event loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
