"""Log of what the driver did, with numbered and timed steps."""

from collections.abc import Callable
from dataclasses import replace

from toolbench.engine.events import ExchangeError, Request, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Message, Turn
from toolbench.providers.driver.step_records import ExchangeStep, Recorder, ToolStep
from toolbench.providers.http.exchange import Exchange


@light(frozen=True, slots=True)
class Attempt:
    """One attempt to send a request.

    Attributes:
        number: counts from 1.
        started_ms: milliseconds from the trial's start.
        backoff_ms: milliseconds waited before this attempt.
        reason: error code of the attempt before, "" for the first attempt.
    """

    request: Request
    number: int
    started_ms: float
    backoff_ms: float = 0.0
    reason: str = ""


class StepLog:
    """Log that numbers the steps of one trial from 1 and measures time from its own creation.

    `clock` returns seconds.
    """

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._start = clock()
        self._ordinal = 0

    def now_ms(self) -> float:
        """Return the milliseconds since the trial's start."""
        return (self._clock() - self._start) * 1000

    def record_exchange(
        self, attempt: Attempt, exchange: Exchange, *, read: Turn | ExchangeError, partial: Message | None = None
    ) -> Turn | ExchangeError:
        """Record one attempt with all that came back.

        Args:
            attempt: the attempt that ended.
            exchange: its request and response.
            read: what the response was read as.
            partial: of an answer that broke off, the message as far as it came.

        Returns:
            `read` with secrets masked. Callers must use it in place of `read`.
        """
        body, masker = exchange.request_body, exchange.template.masker
        parsed, partial = read, partial or {}
        read, partial = masker.mask_value((read, partial))
        self._recorder.record(
            ExchangeStep(
                ordinal=self._next_ordinal(),
                turn=attempt.request.turn,
                attempt=attempt.number,
                url=exchange.template.masked_url,
                request=attempt.request if body is attempt.request.body else replace(attempt.request, body=body),
                request_body=body,
                request_headers=exchange.template.masked_headers,
                status=exchange.status,
                response_headers=exchange.response_headers,
                response_body=exchange.body,
                body_bytes=exchange.body_bytes,
                body_cut=exchange.cut,
                masked=exchange.masked or read is not parsed,
                started_ms=attempt.started_ms,
                first_byte_ms=_compute_offset_ms(exchange, exchange.first_byte),
                first_token_ms=_compute_offset_ms(exchange, exchange.first_token),
                first_call_ms=_compute_offset_ms(exchange, exchange.first_call),
                duration_ms=(exchange.ended - exchange.started) * 1000,
                backoff_ms=attempt.backoff_ms,
                retry_reason=attempt.reason,
                error=read if isinstance(read, ExchangeError) else None,
                turn_read=read if isinstance(read, Turn) else None,
                chunks=tuple(exchange.chunks),
                partial=partial,
            )
        )
        return read

    def record_tool(self, turn: int, result: ToolResult, started_ms: float) -> None:
        """Record one call with its result; a call that never ran has a duration of 0."""
        self._recorder.record(ToolStep(self._next_ordinal(), turn, started_ms, result.duration_ms, result))

    def _next_ordinal(self) -> int:
        self._ordinal += 1
        return self._ordinal


def _compute_offset_ms(exchange: Exchange, moment: float | None) -> float | None:
    return None if moment is None else (moment - exchange.started) * 1000
