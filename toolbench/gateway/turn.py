"""One turn of the engine for a request: sent as an evaluation sends it, its calls checked against the tools."""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from toolbench.engine.errors import EngineError
from toolbench.engine.events import EmitEvent, EndReason, ExchangeError, LoopResult, StopReason, ToolResult, TurnRecord
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject
from toolbench.gateway.request import CleanCall, GatewayAnswer, GatewayError, GatewayRequest, refuse
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, TrialStoppedError, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient

_PASSED_ON = (400, 413, 422, 429)  # statuses of the upstream that the client can act on
_TIMEOUT_CODES = ("read_timeout", "connect_timeout", "deadline")


@dataclass(frozen=True, slots=True)
class TurnTarget:
    """Where and how a request is sent."""

    endpoint: Endpoint
    policy: Policy
    client: HttpClient


@dataclass(slots=True)
class TurnOutcome:
    """What became of a request at one target.

    Attributes:
        answer: None if the turn failed.
        error: None if it did not.
        steps: exchanges with the upstream, in order.
        is_upstream_fault: whether another target may do better.
    """

    answer: GatewayAnswer | None = None
    error: GatewayError | None = None
    steps: list[ExchangeStep] = field(default_factory=list)
    is_upstream_fault: bool = False


class _TurnGate:
    """Gate and recorder of one turn: it ends the loop after the first valid call."""

    def __init__(self, steps: list[ExchangeStep], back_off: Callable[[float], Awaitable[None]]) -> None:
        self.has_called = False
        self._steps = steps
        self._back_off = back_off

    async def reserve(self) -> None:
        """Permit a request, unless the turn already has its calls."""
        if self.has_called:
            raise TrialStoppedError(StopReason.BUDGET)

    async def back_off(self, seconds: float) -> None:
        """Wait before a retry."""
        await self._back_off(seconds)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        """Keep an exchange."""
        if isinstance(step, ExchangeStep):
            self._steps.append(step)

    def call_tool(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Note that there is a valid call; the client runs it."""
        self.has_called = True
        return {}


async def run_turn(
    request: GatewayRequest,
    target: TurnTarget,
    back_off: Callable[[float], Awaitable[None]],
    emit: EmitEvent | None = None,
) -> TurnOutcome:
    """Send a request to a target and return its answer or error.

    The policy's `max_turns` is 1, or 2 where one repair is allowed.

    Args:
        request: what the client sent.
        target: where it goes.
        back_off: coroutine function that waits for seconds.
        emit: receives the loop's events while the answer arrives.
    """
    outcome = TurnOutcome()
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
        return outcome
    _read_result(outcome, result, request)
    return outcome


def build_plan(request: GatewayRequest, target: TurnTarget) -> LoopPlan:
    """Return the plan of a request, as that of a trial with the same messages, tools and settings."""
    messages = list(request.messages)
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    user_text = messages.pop()["content"] if messages and messages[-1]["role"] == "user" else ""
    return LoopPlan(
        model=target.endpoint.model,
        policy=target.policy,
        system=system,
        user_text=user_text,
        history=tuple(messages),
        tools=request.tools,
        options=request.options,
        stream=request.stream,
        wire=target.endpoint.wire,
    )


def _read_result(outcome: TurnOutcome, result: LoopResult, request: GatewayRequest) -> None:
    record = next((record for record in reversed(result.turns) if record.answer), None)
    if result.end is EndReason.PROVIDER_ERROR and result.error is not None:
        outcome.error, outcome.is_upstream_fault = _build_upstream_error(result.error), result.error.infrastructure
    elif result.end is EndReason.DEADLINE_EXCEEDED:
        outcome.error = GatewayError(504, "upstream_timeout", "The model did not answer within the time limit.")
        outcome.is_upstream_fault = True
    elif record is None or record.answer is None or record.answer.cut:
        outcome.error = GatewayError(502, "upstream_failed", "The model's answer broke off.")
        outcome.is_upstream_fault = True
    elif problem := _find_call_problem(record):
        outcome.error = GatewayError(502, "invalid_tool_call", problem)
        outcome.is_upstream_fault = True
    else:
        outcome.answer = _build_answer(record, result, request, len(outcome.steps))


def _build_upstream_error(error: ExchangeError) -> GatewayError:
    if error.code in _TIMEOUT_CODES:
        return GatewayError(504, "upstream_timeout", f"The model's provider did not answer in time: {error.message}")
    status = error.status if error.status in _PASSED_ON else 502
    sentence = f"The model's provider refused or failed ({error.code}): {error.message[:500]}"
    return GatewayError(status, error.code, sentence, retry_after=1 if status == 429 else None)


def _find_call_problem(record: TurnRecord) -> str:
    """Return why the calls of an answer are not clean, or an empty text."""
    answer = record.answer
    if answer is None:
        return ""
    refused = [result for result in record.results if not result.executed]
    if refused:
        return f"The model's call of {refused[0].call.name[:64]} is not valid: {_describe_refusal(refused[0])}"
    if answer.not_executed and not answer.calls:
        return f"The model attempted a call that cannot be read: {answer.not_run_because[:300]}"
    return ""


def _describe_refusal(result: ToolResult) -> str:
    if result.schema_errors:
        first = result.schema_errors[0]
        return f"{first.path}: {first.message}"[:300]
    return str(result.envelope.errors[0].get("message", ""))[:300] if result.envelope.errors else ""


def _build_answer(record: TurnRecord, result: LoopResult, request: GatewayRequest, requests: int) -> GatewayAnswer:
    answer = record.answer
    assert answer is not None
    calls = tuple(
        CleanCall(called.call.id, called.call.name, json.dumps(called.arguments or {}), called.arguments or {})
        for called in record.results
    )
    finish = "tool_calls" if calls else "length" if answer.finish_reason == "length" else "stop"
    changes = [
        change for turn in result.turns if turn.answer for change in (*turn.request.changes, *turn.answer.changes)
    ]
    changes += [change for called in record.results for change in called.changes]
    return GatewayAnswer(
        request.alias, answer.text, calls, finish, result.usage, answer.path, tuple(changes), max(1, requests)
    )
