"""Whole trials against the personas: the real scenarios, the real loop, the real driver, real HTTP."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolbench.engine.events import Event
from toolbench.engine.loop.loop import LoopPlan
from toolbench.engine.policy.policy import resolve
from toolbench.engine.policy.presets import layers_for
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.evals import scenarios
from toolbench.evals.trials import Verdict
from toolbench.providers.cancelling import Cancel
from toolbench.providers.door import Door
from toolbench.providers.driving import World, drive
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.recording import ExchangeStep, ToolStep
from toolbench.providers.simulated.personas import all_personas
from toolbench.providers.simulated.server import SimulatedServer

AT_ONCE = 20
PATIENT = Timeouts(connect=30, read=60, deadline=300)


@dataclass
class OpenGate:
    """A gate and recorder that let everything pass, without waiting."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Cell:
    persona: str
    scenario: str
    strategy: str = "raw"
    kind: str = "parity"
    method: str = "native"
    stream: bool = False
    wire: str = "chat"


async def judged(cell: Cell, seed: int, server: SimulatedServer, door: Door) -> Verdict:
    scenario = scenarios.find(cell.scenario)
    instance = scenario.draw(seed, kind=cell.kind)
    workspace = scenario.open(instance)
    under = layers_for(cell.strategy, workarounds=all_personas()[cell.persona].workarounds)
    method = ("method", {"method": cell.method, "constraint": "response_format"})
    plan = LoopPlan(
        model=cell.persona,
        policy=resolve([*under, method, ("scenario", instance.layer)]).policy,
        system=instance.system,
        user_text=instance.user_text,
        history=instance.history,
        tools=ToolRegistry(instance.tools),
        seed=seed,
        stream=cell.stream,
        wire=cell.wire,
    )
    endpoint = Endpoint(server.url, cell.persona, key=server.key, seeded=True, timeouts=PATIENT, wire=cell.wire)
    notes = OpenGate()
    world = World(endpoint, door, workspace.call, notes, notes, time.monotonic, Cancel(), _ignore)
    return scenario.judge(instance, await drive(plan, world), workspace)


def play_trials(cell: Cell, seeds: Iterable[int]) -> list[Verdict]:
    """One verdict per seed, in order."""

    async def run() -> list[Verdict]:
        gate, server = asyncio.Semaphore(AT_ONCE), SimulatedServer(latency=0)
        await server.start()

        async def one(seed: int, door: Door) -> Verdict:
            async with gate:
                return await judged(cell, seed, server, door)

        try:
            async with Door() as door:
                return await asyncio.gather(*(one(seed, door) for seed in seeds))
        finally:
            await server.stop()

    return asyncio.run(run())


def _ignore(event: Event) -> None: ...
