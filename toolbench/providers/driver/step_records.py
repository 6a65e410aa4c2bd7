"""Records that the driver writes, in order and with secrets masked.

There is one per exchange attempt and one per tool call.
"""

from dataclasses import field
from typing import Protocol

from toolbench.engine.events import ExchangeError, Request, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject, Message, Turn


@light(frozen=True, slots=True)
class ExchangeStep:
    """One attempt to get one answer.

    Attributes:
        masked: whether a known secret was masked, its length kept.
        started_ms: milliseconds from the trial's start; the other times count from the attempt's start.
        chunks: (offset in ms, length in bytes) in the order received.
        first_token_ms: when the first text, reasoning or call of a stream was read.
        first_call_ms: when the arguments of a call in a stream were first complete.
        partial: message of a stream that broke off, as far as it came.
    """

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
    body_bytes: int  # bytes received, before truncation
    body_cut: bool
    masked: bool
    started_ms: float
    first_byte_ms: float | None
    duration_ms: float
    backoff_ms: float  # wait before this attempt
    retry_reason: str
    error: ExchangeError | None
    turn_read: Turn | None
    chunks: tuple[tuple[float, int], ...] = ()
    first_token_ms: float | None = None
    first_call_ms: float | None = None
    partial: Message = field(default_factory=dict)


@light(frozen=True, slots=True)
class ToolStep:
    """One tool call with its result; `started_ms` counts from the trial's start."""

    ordinal: int
    turn: int
    started_ms: float
    duration_ms: float
    result: ToolResult


class Recorder(Protocol):
    """Receiver of the steps of a trial."""

    def record(self, step: "ExchangeStep | ToolStep") -> None:
        """Store one step."""
        ...


class Gate(Protocol):
    """Control over the requests of a trial.

    The driver awaits `reserve` before every attempt and `back_off` between attempts.
    """

    async def reserve(self) -> None:
        """Count one request against the run's request budget before it is sent.

        Raises:
            TrialStoppedError: the budget is used up or the run was cancelled.
        """
        ...

    async def back_off(self, seconds: float) -> None:
        """Wait without holding the provider's slot, and take a slot again before returning."""
        ...
