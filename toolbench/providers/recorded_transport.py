"""Transport that replays a stored trial: no request is sent and no real time passes.

The same loop and driver run on a virtual clock, with responses, failures and stops from a recording.

A stored response is used while the model would see the same request. Two requests are the same for the model when they
go to the same path and their bodies are equal as JSON except for `UNSEEN_FIELDS`, which configure the server and never
reach the model. From the first request that differs otherwise, the model's answer is unknown.
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
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
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
    """Replay that needs something the recording does not hold; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """One attempt as it was stored.

    Attributes:
        chunks: sizes of the body's chunks in bytes, in the order received.
        calls: number of calls found in the answer.
        masked: whether secrets are masked.
        cut: whether the body is truncated.
        left_out: parameters that the endpoint was known to refuse.
    """

    url: str
    request: bytes
    status: int | None
    headers: JsonObject
    body: bytes
    error: ExchangeError | None
    chunks: tuple[int, ...] = ()
    calls: int = 0
    masked: bool = False
    cut: bool = False
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recording:
    """One execution of one trial.

    Attributes:
        stopped: reason with which Toolbench ended the trial, None when it did not.
        in_tools: whether it ended the trial while tools ran.
        own_plan: whether the trial is replayed with its original plan. A truncated body is then the failure that it
            was.
    """

    exchanges: tuple[StoredExchange, ...]
    stopped: StopReason | None = None
    in_tools: bool = False
    own_plan: bool = True


@dataclass(eq=False, slots=True)
class RecordedTransport(httpx.AsyncBaseTransport):
    """Transport that returns a recording's responses in order, and gate that stops the trial as recorded.

    Attributes:
        cancelled: cancellation event of the trial.
        assumed: unseen fields in which requests differed from the recording.
    """

    recording: Recording
    cancelled: asyncio.Event
    assumed: set[str] = field(default_factory=set)
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
        if self.is_exhausted and self.recording.stopped:
            raise TrialStoppedError(self.recording.stopped)

    async def back_off(self, seconds: float) -> None:
        """Return at once: a replay does not wait between attempts."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the next stored response.

        Raises:
            NotRecordedError: the recording has no response for this request.
            httpx.HTTPError: the stored exchange failed in this way.
        """
        made = await request.aread()
        if self.is_exhausted:
            raise NotRecordedError("no further answer is stored")
        stored = self.recording.exchanges[self._position]
        self._check_request(stored, request.url.path, made)
        self._position += 1
        if stored.error and stored.error.code in LOCAL_STOP_CODES:
            await self._wait_for_stop(StopReason(stored.error.code))
        return self._build_response(stored)

    def wrap_tools(self, call_tool: CallTool) -> CallTool:
        """Return a function that runs tools as recorded.

        Where the recorded trial was stopped while tools ran, its calls never return.
        """

        def call(name: str, arguments: JsonObject, call_id: str) -> object:
            stopped = self.recording.stopped
            if stopped and self.recording.in_tools and self.is_exhausted:
                return self._wait_for_stop(stopped)
            return call_tool(name, arguments, call_id)

        return call

    def _check_request(self, stored: StoredExchange, path: str, made: bytes) -> None:
        if stored.request != made and not (stored.masked and _is_same_but_masked(stored.request, made)):
            differing = _find_differing_fields(stored.request, made)
            if seen := sorted(differing - UNSEEN_FIELDS):
                raise NotRecordedError(f"the model would be shown another request ({', '.join(seen)})")
            if PARALLEL_FIELD in differing and stored.calls > 1:
                raise NotRecordedError("several calls were made at once, and the request would say otherwise of that")
            if differing and stored.error and stored.error.code in REFUSAL_CODES:
                raise NotRecordedError("the endpoint refused a request that differs from this one")
            if refused := sorted(differing & stored.left_out):
                raise NotRecordedError(f"the endpoint refuses what this request would carry ({', '.join(refused)})")
            self.assumed |= differing
        if not stored.url.endswith(path):
            raise NotRecordedError("the request would go to another path")
        if stored.cut and not (self.recording.own_plan and stored.error):
            raise NotRecordedError("the stored answer is cut")

    async def _wait_for_stop(self, reason: StopReason) -> None:
        """Wait until the trial is stopped for this reason; a cancellation is triggered here."""
        if reason is StopReason.CANCELLED:
            self.cancelled.set()
        await asyncio.Event().wait()

    def _build_response(self, stored: StoredExchange) -> httpx.Response:
        failure = _find_exception(stored)
        if stored.status is None:
            raise failure or httpx.RemoteProtocolError("")
        kept = {name: str(value) for name, value in stored.headers.items() if name not in _BODY_HEADERS}
        return httpx.Response(stored.status, headers=kept, stream=_RecordedBody(stored, failure))


@dataclass(eq=False, slots=True)
class _RecordedBody(httpx.AsyncByteStream):
    """Stored body in the chunks in which it came, followed by the failure that ended it."""

    stored: StoredExchange
    failure: httpx.HTTPError | None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        start = 0
        for size in self.stored.chunks:
            yield self.stored.body[start : start + size]
            start += size
        if rest := self.stored.body[start:]:
            yield rest
        if self.failure:
            raise self.failure


def _find_exception(stored: StoredExchange) -> httpx.HTTPError | None:
    """Return the exception that ended the exchange; None where the stored status and body show the error."""
    error = stored.error
    if error is None or error.code not in _EXCEPTION_BY_CODE or (stored.status or 0) >= 300:
        return None
    if stored.status is not None:
        found = classify_response(status=stored.status, headers={}, body=stored.body)
        if found is not None and found.code == error.code:
            return None
    return _EXCEPTION_BY_CODE[error.code](error.message)


def _is_same_but_masked(stored: bytes, made: bytes) -> bool:
    """Return whether the bodies differ only where a secret was masked, its length kept."""
    alike = (kept in (sent, ord("*")) for kept, sent in zip(stored, made, strict=False))
    return len(stored) == len(made) and all(alike)


def _find_differing_fields(stored: bytes, made: bytes) -> set[str]:
    """Return the top-level fields in which two bodies differ; {"body"} when one is not a JSON object."""
    before, after = _parse_fields(stored), _parse_fields(made)
    if before is None or after is None:
        return {"body"}
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def _parse_fields(body: bytes) -> JsonObject | None:
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


class _VirtualTimeSelector(DefaultSelector):
    """Selector that never waits but moves the event loop's clock forward."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Move the clock by `timeout` seconds and return the events that are ready.

        Raises:
            RuntimeError: the loop waits without a timeout, so nothing could ever happen.
        """
        if timeout is None:
            raise RuntimeError("a replay waits for something that cannot happen")
        if timeout > 0:
            self._jump(timeout)
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock stands still while tasks can run and jumps to the next scheduled time."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_VirtualTimeSelector(self._jump))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Value], *args: *Arguments
    ) -> asyncio.Future[Value]:
        """Run the function at once in this thread, because this loop cannot wait for another thread."""
        future: asyncio.Future[Value] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _jump(self, seconds: float) -> None:
        self._now += seconds


def run_in_virtual_time(replays: Coroutine[Any, Any, Value]) -> Value:
    """Run the coroutine to its end without waiting. Call it in a thread without a running event loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(replays)
