"""Records of the steps of a trial, and the interfaces of the driver to its recorder and its gate.

The driver records each attempt of an exchange and each tool call that ended, in order and with secrets masked.
"""

from dataclasses import field
from typing import Protocol

from toolbench.engine.events import ExchangeError, Request, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject, Message, Turn


@light(frozen=True, slots=True)
class ExchangeStep:
    """Record of one attempt of an exchange.

    Times in ms count from the attempt's start, except for `started_ms`, which counts from the trial's start.

    Attributes:
        ordinal: number of the step in the trial, from 1.
        turn: number of the turn, from 0.
        attempt: number of the attempt, from 1 for each request.
        url: the address.
        request: the engine's request, its body masked.
        request_body: the body that was sent, masked.
        request_headers: the headers that were sent, masked, with lower-case names.
        status: the HTTP status, None if no response head arrived.
        response_headers: masked headers with lower-case names; {} if no response head arrived.
        response_body: the body that was received, masked and without content coding, or the part of it that was kept.
        body_bytes: bytes received over the network, before decompression and truncation.
        body_cut: whether the body was truncated.
        masked: whether a secret was masked; secrets in the response headers do not count.
        first_byte_ms: when the first chunk arrived, None if none did.
        duration_ms: the time until the attempt ended.
        backoff_ms: the wait before this attempt.
        retry_reason: error code of the previous attempt, `stream_cut` if its answer was incomplete without an error;
            "" for the first attempt.
        error: the error of the exchange; None if `turn_read` is set.
        turn_read: the decoded answer; None if `error` is set.
        chunks: (arrival in ms, bytes kept) in the order received.
        first_token_ms: when the first text, reasoning or call of a stream was read; None if none was.
        first_call_ms: when the arguments of a call in a stream were first complete; None if they never were.
        partial: the part of the message that arrived before the exchange failed; {} otherwise.
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
    body_bytes: int
    body_cut: bool
    masked: bool
    started_ms: float
    first_byte_ms: float | None
    duration_ms: float
    backoff_ms: float
    retry_reason: str
    error: ExchangeError | None
    turn_read: Turn | None
    chunks: tuple[tuple[float, int], ...] = ()
    first_token_ms: float | None = None
    first_call_ms: float | None = None
    partial: Message = field(default_factory=dict)


@light(frozen=True, slots=True)
class ToolStep:
    """Record of one tool call with its result.

    Attributes:
        ordinal: number of the step in the trial, from 1.
        turn: number of the turn that made the call, from 0.
        started_ms: when the call started, or was recorded if it never ran, in milliseconds from the trial's start.
        duration_ms: the time that the call ran; 0 for a call that never ran.
        result: the call's result.
    """

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
    """Component that permits the requests of a trial.

    The driver awaits `reserve` before every attempt and `back_off` between two attempts.
    """

    async def reserve(self) -> None:
        """Wait until the next request is permitted; count it against the request budget of a run.

        The driver postpones the trial deadline by the duration of this call.

        Raises:
            TrialStoppedError: no further request is permitted. For instance, the budget is used up or the run was
                cancelled.
        """
        ...

    async def back_off(self, seconds: float) -> None:
        """Wait for `seconds`; a trial of a run releases its slot before the wait and acquires a slot afterwards."""
        ...
