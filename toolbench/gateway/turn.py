"""One turn of the engine for a request of a client.

The turn sends the same request to the model as a trial, and checks the calls of the answer against the client's tools.
"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil, inf

from toolbench.engine.errors import EngineError
from toolbench.engine.events import EmitEvent, EndReason, ExchangeError, LoopResult, StopReason, ToolResult, TurnRecord
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject, Usage
from toolbench.gateway.request import GatewayAnswer, GatewayError, GatewayRequest, ValidCall, refuse
from toolbench.lab.worker.pacing.pacer import OVERLOAD_STATUSES
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, TrialStoppedError, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_codes import lookup_error_code
from toolbench.providers.http.retry_delay import parse_retry_after

_FORWARDED_STATUSES = (400, 413, 422, 429)  # statuses of the upstream that the client can act on
_TIMEOUT_CODES = ("read_timeout", "connect_timeout", "deadline")  # error codes that become `upstream_timeout`
_CANCELLED_CODE = "cancelled"  # the driver's code for a request whose task was cancelled


@dataclass(frozen=True, slots=True)
class TurnTarget:
    """Endpoint, settings and HTTP client of one turn."""

    endpoint: Endpoint
    policy: Policy
    client: HttpClient


@dataclass(slots=True)
class TurnOutcome:
    """Result of a request at one target.

    Attributes:
        answer: the answer; None if the turn failed.
        error: the error; None if the turn succeeded.
        steps: exchanges with the upstream, in order.
        is_upstream_fault: whether the upstream or the model failed, so that a fallback may succeed.
    """

    answer: GatewayAnswer | None = None
    error: GatewayError | None = None
    steps: list[ExchangeStep] = field(default_factory=list)
    is_upstream_fault: bool = False

    def list_usages(self) -> list[Usage | None]:
        """Return the usage of each request that may have cost something, in order.

        Returns:
            One usage for each answer, None if the provider sent none; and None for each request that was cancelled
            before its answer was complete. Requests that failed are left out.
        """
        usages: list[Usage | None] = []
        for step in self.steps:
            if step.turn_read is not None:
                usages.append(step.turn_read.usage)
            elif step.error is not None and step.error.code == _CANCELLED_CODE:
                usages.append(None)
        return usages


class _TurnGate:
    """Gate, recorder and tools of one turn.

    The gate ends the loop before the request that would send the results of valid calls: the client runs the calls.

    Attributes:
        has_called: whether the turn has a valid call.
    """

    def __init__(self, steps: list[ExchangeStep], back_off: Callable[[float], Awaitable[None]]) -> None:
        self.has_called = False
        self._steps = steps
        self._back_off = back_off

    async def reserve(self) -> None:
        """Permit a request to the upstream.

        Raises:
            TrialStoppedError: the turn has a valid call, so its answer is complete.
        """
        if self.has_called:
            raise TrialStoppedError(StopReason.BUDGET)

    async def back_off(self, seconds: float) -> None:
        """Wait before a retry."""
        await self._back_off(seconds)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        """Add an exchange to the steps; the outcome of a tool is not kept."""
        if isinstance(step, ExchangeStep):
            self._steps.append(step)

    def call_tool(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Set `has_called` and return an empty result; the client runs the call."""
        self.has_called = True
        return {}


async def run_turn(
    request: GatewayRequest,
    target: TurnTarget,
    outcome: TurnOutcome,
    back_off: Callable[[float], Awaitable[None]],
    emit: EmitEvent | None = None,
) -> None:
    """Send a request to a target and set the answer or error of the outcome.

    Args:
        request: the client's request.
        target: where to send it. The policy's `max_turns` is 1, or 2 if one re-prompt is allowed.
        outcome: a new outcome. Each exchange is added as soon as it has ended, also if this task is cancelled.
        back_off: waits before a retry, for the given seconds.
        emit: receives the loop's events while the answer arrives; None if the client wants no stream.
    """
    gate = _TurnGate(outcome.steps, back_off)
    context = RunContext(
        endpoint=target.endpoint,
        client=target.client,
        call_tool=gate.call_tool,
        gate=gate,
        recorder=gate,
        clock=time.perf_counter,
        cancelled=CancellationToken(),
        emit=emit,
    )
    try:
        result = await drive(build_plan(request, target), context)
    except EngineError as error:
        outcome.error = refuse(f"The request cannot be sent: {error}")
    else:
        _set_outcome(outcome, result, request)


def build_plan(request: GatewayRequest, target: TurnTarget) -> LoopPlan:
    """Return the loop's plan, equal to the plan of a trial with the same messages, tools and settings.

    A blank last message stays in the history, because the loop adds no blank `user_text`.
    """
    messages = list(request.messages)
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    has_question = messages[-1]["role"] == "user" and messages[-1]["content"].strip()
    user_text = messages.pop()["content"] if has_question else ""
    return LoopPlan(
        model=target.endpoint.model,
        policy=target.policy,
        system=system,
        user_text=user_text,
        history=tuple(messages),
        tools=request.tools,
        options=request.options,
        is_streamed=request.stream,
        wire=target.endpoint.wire,
    )


def _set_outcome(outcome: TurnOutcome, result: LoopResult, request: GatewayRequest) -> None:
    """Set the answer or the error of the outcome, which depends on how the loop ended and on its last answer."""
    record = next((record for record in reversed(result.turns) if record.answer), None)
    if result.end is EndReason.PROVIDER_ERROR and result.error is not None:
        headers = outcome.steps[-1].response_headers if outcome.steps else {}
        outcome.error = _build_upstream_error(result.error, headers)
        outcome.is_upstream_fault = result.error.infrastructure or _is_model_error(result.error)
    elif result.end is EndReason.DEADLINE_EXCEEDED:
        sentence = "The model did not answer within the time limit. Send the request again later."
        outcome.error = GatewayError(504, "upstream_timeout", sentence)
        outcome.is_upstream_fault = True
    elif record is None or record.answer is None or record.answer.is_truncated:
        outcome.error = GatewayError(502, "upstream_failed", "The model's answer broke off. Send the request again.")
        outcome.is_upstream_fault = True
    elif problem := _find_call_problem(record):
        outcome.error = GatewayError(502, "invalid_tool_call", problem)
        outcome.is_upstream_fault = True
    else:
        outcome.answer = _build_answer(record, result, request, len(outcome.steps))


def _is_model_error(error: ExchangeError) -> bool:
    """Return whether the model caused the error, such as an answer that broke off or cannot be read."""
    return lookup_error_code(error.code).error_class == "model"


def _build_upstream_error(error: ExchangeError, headers: JsonObject) -> GatewayError:
    """Return the error for the client; `headers` are those of the provider's last response."""
    if error.code in _TIMEOUT_CODES:
        return GatewayError(504, "upstream_timeout", f"The model's provider did not answer in time: {error.message}")
    status = error.status if error.status in _FORWARDED_STATUSES else 502
    sentence = f"The model's provider refused or failed ({error.code}): {error.message[:500]}"
    is_overload = error.status in OVERLOAD_STATUSES
    retry_after = ceil(parse_retry_after(headers, inf) or 1) if is_overload else None
    return GatewayError(status, error.code, sentence, retry_after=retry_after)


def _find_call_problem(record: TurnRecord) -> str:
    """Return why a call of the answer is not valid or cannot be read; "" if there is no such call."""
    refused_result = next((result for result in record.results if not result.was_executed), None)
    if refused_result is not None:
        name = refused_result.call.name[:64]
        return f"The model's call of {name} is not valid: {_describe_refusal(refused_result)}"
    answer = record.answer
    if answer is not None and answer.has_unexecuted_call and not answer.calls:
        return f"The model attempted a call that cannot be read: {answer.unexecuted_reason[:300]}"
    return ""


def _describe_refusal(result: ToolResult) -> str:
    if result.schema_errors:
        schema_error = result.schema_errors[0]
        return f"{schema_error.path}: {schema_error.message}"[:300]
    return str(result.envelope.errors[0].get("message", ""))[:300] if result.envelope.errors else ""


def _build_answer(record: TurnRecord, result: LoopResult, request: GatewayRequest, request_count: int) -> GatewayAnswer:
    answer = record.answer
    assert answer is not None
    calls = tuple(
        ValidCall(tool.call.id, tool.call.name, json.dumps(tool.arguments or {}), tool.arguments or {})
        for tool in record.results
    )
    finish = "tool_calls" if calls else "length" if answer.finish_reason == "length" else "stop"
    changes = list(request.changes)
    changes += [
        change for turn in result.turns if turn.answer for change in (*turn.request.changes, *turn.answer.changes)
    ]
    changes += [change for tool in record.results for change in tool.changes]
    return GatewayAnswer(
        request.alias,
        answer.text,
        calls,
        finish,
        result.usage,
        answer.method_used,
        tuple(changes),
        max(1, request_count),
    )
