"""What the driver writes down: one value per exchange attempt and per tool execution, in order, secrets already
masked."""

from dataclasses import field
from typing import Protocol

from toolbench.engine.events import ExchangeError, Request, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject, Message, Turn


@light(frozen=True, slots=True)
class ExchangeStep:
    """One attempt to get one answer. Times in milliseconds; `started_ms` counts from the trial's start. `chunks` are
    (offset ms, length in bytes) in the order received. `masked` says that a known secret was overwritten, length
    kept. Of a streamed answer, `first_token_ms` and `first_call_ms` say when the first piece of text, reasoning or call
    was read, and when the arguments of a call were whole; `partial` is the message of one that broke off, as far as it
    came."""

    ordinal: int
    turn: int
    attempt: int
    url: str
    request: Request
    request_body: bytes
    request_headers: JsonObject
    status: int | None
    response_headers: JsonObject
    response_body: bytes
    body_bytes: int  # as received, before any cut
    body_cut: bool
    masked: bool
    started_ms: float
    first_byte_ms: float | None
    duration_ms: float
    backoff_ms: float  # waited before this attempt
    retry_reason: str
    error: ExchangeError | None
    turn_read: Turn | None
    chunks: tuple[tuple[float, int], ...] = ()
    first_token_ms: float | None = None
    first_call_ms: float | None = None
    partial: Message = field(default_factory=dict)


@light(frozen=True, slots=True)
class ToolStep:
    ordinal: int
    turn: int
    started_ms: float
    duration_ms: float
    result: ToolResult


class Recorder(Protocol):
    def record(self, step: "ExchangeStep | ToolStep") -> None: ...


class Gate(Protocol):
    """The trial's permission to send. The driver awaits `reserve` before every attempt and lets the gate do the
    waiting between."""

    async def reserve(self) -> None:
        """Counts one request against the run's caps before it is sent. Raises providers.driving.Stopped when none is
        left or the run was cancelled."""
        ...

    async def back_off(self, seconds: float) -> None:
        """Waits without holding the provider's slot, and takes a slot again before it returns."""
        ...
