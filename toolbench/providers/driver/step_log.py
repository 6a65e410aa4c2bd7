"""Log of the steps of one trial: it numbers and times each step and passes it to the recorder."""

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
        request: the engine's request.
        number: number of the attempt, from 1 for each request.
        started_ms: when the attempt started, in milliseconds from the trial's start.
        backoff_ms: milliseconds waited before this attempt.
        retry_reason: error code of the previous attempt, `stream_cut` if its answer was incomplete without an error;
            "" for the first attempt.
    """

    request: Request
    number: int
    started_ms: float
    backoff_ms: float = 0.0
    retry_reason: str = ""


class StepLog:
    """Log that numbers the steps of one trial from 1.

    Times count from the creation of the log, which is the trial's start. `clock` returns seconds.
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
        self, attempt: Attempt, exchange: Exchange, answer: Turn | ExchangeError, partial: Message
    ) -> Turn | ExchangeError:
        """Record one attempt with its request and response.

        Args:
            attempt: the attempt that ended.
            exchange: its request and response.
            answer: the decoded answer, or the error of the exchange.
            partial: the part of the message that arrived if the exchange failed, else {}.

        Returns:
            `answer` with secrets masked. The caller must use it in place of `answer`.
        """
        body = exchange.request_body
        masked_answer, masked_partial = exchange.template.masker.mask_value((answer, partial))
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
                body_cut=exchange.is_truncated,
                masked=exchange.is_masked or masked_answer is not answer,
                started_ms=attempt.started_ms,
                first_byte_ms=_compute_offset_ms(exchange, exchange.first_byte_at),
                first_token_ms=_compute_offset_ms(exchange, exchange.first_token_at),
                first_call_ms=_compute_offset_ms(exchange, exchange.first_call_at),
                duration_ms=(exchange.ended_at - exchange.started_at) * 1000,
                backoff_ms=attempt.backoff_ms,
                retry_reason=attempt.retry_reason,
                error=masked_answer if isinstance(masked_answer, ExchangeError) else None,
                turn_read=masked_answer if isinstance(masked_answer, Turn) else None,
                chunks=tuple(exchange.chunks),
                partial=masked_partial,
            )
        )
        return masked_answer

    def record_tool(self, turn: int, result: ToolResult, started_ms: float) -> None:
        """Record one tool call with its result; a call that never ran has a duration of 0.

        Args:
            turn: number of the turn that made the call.
            result: the call's result.
            started_ms: when the call started, in milliseconds from the trial's start.
        """
        self._recorder.record(ToolStep(self._next_ordinal(), turn, started_ms, result.duration_ms, result))

    def _next_ordinal(self) -> int:
        self._ordinal += 1
        return self._ordinal


def _compute_offset_ms(exchange: Exchange, moment: float | None) -> float | None:
    """Return the milliseconds from the exchange's start to `moment`, a time of its clock; None if `moment` is None."""
    return None if moment is None else (moment - exchange.started_at) * 1000
