"""One trial on the real loop and real sockets, with notes of what happened."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from toolbench.engine.events import Event, LoopResult, StopReason
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, TrialStoppedError, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import Exchange

WEATHER_TOOL = ToolDefinition(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
OSLO_CALL = ("get_weather", {"city": "Oslo"})


def build_plan(**policy: object) -> LoopPlan:
    return LoopPlan(
        model="scripted",
        policy=resolve_policy([("test", policy)]).policy,
        system="Be brief.",
        user_text="Weather in Oslo?",
        tools=ToolRegistry((WEATHER_TOOL,)),
    )


@dataclass
class TrialNotes:
    """A recorder, a gate that waits for `gate_seconds`, and an application with one tool."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    opened: list[Exchange] = field(default_factory=list)
    reserved: int = 0
    allowed: int = 1000
    waits_for_real: bool = False
    gate_seconds: float = 0.0
    tool: Callable[[str, JsonObject, str], object] = lambda name, arguments, call_id: {"city": arguments["city"]}

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None:
        if self.reserved >= self.allowed:
            raise TrialStoppedError(StopReason.BUDGET)
        self.reserved += 1
        await asyncio.sleep(self.gate_seconds)

    async def back_off(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(seconds if self.waits_for_real else 0)

    def has_received(self) -> bool:
        """Return whether any byte of a body has arrived."""
        return any(exchange.body_bytes for exchange in self.opened)

    def waits_at_gate(self) -> bool:
        return self.reserved > 0

    def waits_long(self) -> bool:
        return bool(self.waits)

    def has_delta(self) -> bool:
        """Return whether a chunk of a stream was read."""
        return any(event.type == "llm_delta" for event in self.events)

    @property
    def exchanges(self) -> list[ExchangeStep]:
        return [step for step in self.steps if isinstance(step, ExchangeStep)]

    @property
    def codes(self) -> list[str]:
        return [step.error.code if step.error else "" for step in self.exchanges]


class NotingHttpClient(HttpClient):
    """HTTP client that adds every exchange to the notes when it is built."""

    def __init__(self, notes: TrialNotes) -> None:
        super().__init__()
        self._notes = notes

    def build_exchange(self, endpoint: Endpoint, path: str, body: bytes | None = None) -> Exchange:
        exchange = super().build_exchange(endpoint, path, body)
        self._notes.opened.append(exchange)
        return exchange


def drive_trial(
    endpoint: Endpoint,
    notes: TrialNotes,
    loop_plan: LoopPlan | None = None,
    *,
    cancel_at: Callable[[], bool] | None = None,
    stop_at: Callable[[], bool] | None = None,
) -> LoopResult:
    """Drive one trial; cancel it, or stop its worker, as soon as `cancel_at` or `stop_at` returns True."""

    async def run() -> LoopResult:
        cancelled = CancellationToken()
        async with NotingHttpClient(notes) as client, asyncio.timeout(60):
            context = RunContext(
                endpoint, client, notes.tool, notes, notes, time.perf_counter, cancelled, notes.events.append
            )
            if cancel_at is not None and cancel_at():
                cancelled.set()
            task = asyncio.create_task(drive(loop_plan or build_plan(), context))
            moment = cancel_at or stop_at
            while moment is not None and not moment():
                await asyncio.sleep(0.01)
            if cancel_at is not None:
                cancelled.set()
            if stop_at is not None:
                task.cancel()
            return await task

    return asyncio.run(run())
