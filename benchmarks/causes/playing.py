"""Trials of simulated models with one drift or two: the real scenarios, loop, driver and HTTP, without the database."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from toolbench.engine.events import End, Event
from toolbench.engine.loop.loop import LoopPlan
from toolbench.engine.policy.policy import resolve
from toolbench.engine.policy.presets import layers_for
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.evals import scenarios
from toolbench.evals.due import grade
from toolbench.evals.trials import DRAWN, Instance, Scenario, Verdict
from toolbench.lab.steps.causes import cause_columns
from toolbench.lab.steps.driven_steps import driven_steps
from toolbench.providers.cancelling import Cancel
from toolbench.providers.door import Door
from toolbench.providers.driving import World, drive
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.recording import ExchangeStep, ToolStep
from toolbench.providers.simulated.personas import Persona, all_personas
from toolbench.providers.simulated.server import SimulatedServer

AT_ONCE = 20
PATIENT = Timeouts(connect=30, read=60, deadline=300)
HASTY = Timeouts(connect=30, read=0.2, deadline=300)  # for models that never answer
NEVER_ANSWERS = "never_answers"


@dataclass(frozen=True, order=True)
class Cell:
    """One simulated model, or two whose drifts it has, in one scenario."""

    personas: tuple[str, ...]
    scenario: str
    strategy: str = "raw"
    method: str = "native"
    stream: bool = False
    wire: str = "chat"

    @property
    def model(self) -> str:
        return "+".join(self.personas)


@dataclass(frozen=True)
class Played:
    cell: Cell
    seed: int
    outcome: str
    failure_class: str
    cause: str

    @property
    def failed(self) -> bool:
        return self.outcome in ("fail", "infra")


@dataclass(slots=True)
class Personas(SimulatedServer):
    """The simulated provider, with models that have every drift of the personas in their name, in every trial."""

    latency: float = 0

    def cast(self, name: str) -> tuple[Persona, ...]:
        known = all_personas()
        return tuple(replace(known[one], rate=1.0) for one in name.split("+") if one in known)


@dataclass
class Recorder:
    """A gate that lets everything pass without waiting, and keeps the steps."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None: ...


def play(trials: Iterable[tuple[Cell, int]]) -> list[Played]:
    """Return what became of each cell and seed, in their order."""
    return asyncio.run(_play(tuple(trials)))


async def _play(trials: Sequence[tuple[Cell, int]]) -> list[Played]:
    free, server = asyncio.Semaphore(AT_ONCE), Personas()
    await server.start()

    async def one(cell: Cell, seed: int, door: Door) -> Played:
        async with free:
            return await _trial(cell, seed, server, door)

    try:
        async with Door() as door:
            return await asyncio.gather(*(one(cell, seed, door) for cell, seed in trials))
    finally:
        await server.stop()


async def _trial(cell: Cell, seed: int, server: SimulatedServer, door: Door) -> Played:
    scenario = scenarios.find(cell.scenario)
    instance = scenario.draw(seed, kind=DRAWN)
    workspace, recorder = scenario.open(instance), Recorder()
    endpoint = Endpoint(server.url, cell.model, key=server.key, seeded=True, timeouts=_timeouts(cell), wire=cell.wire)
    world = World(endpoint, door, workspace.call, recorder, recorder, time.monotonic, Cancel(), _ignore)
    ended = await drive(_plan(cell, instance, seed), world)
    verdict = scenario.judge(instance, ended, workspace)
    cause = _cause(scenario, instance, verdict, ended.end, recorder)
    return Played(cell, seed, verdict.outcome, verdict.failure_class, cause)


def _plan(cell: Cell, instance: Instance, seed: int) -> LoopPlan:
    presets = [preset for one in cell.personas for preset in all_personas()[one].workarounds]
    method = ("method", {"method": cell.method, "constraint": "response_format"})
    layers = [*layers_for(cell.strategy, workarounds=presets), method, ("scenario", instance.layer)]
    return LoopPlan(
        model=cell.model,
        policy=resolve(layers).policy,
        system=instance.system,
        user_text=instance.user_text,
        history=instance.history,
        tools=ToolRegistry(instance.tools),
        seed=seed,
        stream=cell.stream,
        wire=cell.wire,
    )


def _timeouts(cell: Cell) -> Timeouts:
    hangs = any(all_personas()[one].drift == NEVER_ANSWERS for one in cell.personas)
    return HASTY if hangs else PATIENT


def _cause(scenario: Scenario, instance: Instance, verdict: Verdict, end: End, recorder: Recorder) -> str:
    steps = driven_steps(recorder.steps)
    graded = grade(steps, scenario.due(instance))
    trial = {"outcome": verdict.outcome, "end": end.value, "failure_class": verdict.failure_class}
    return str(cause_columns(steps, trial, scenario=scenario.slug, graded=graded)["cause"])


def _ignore(event: Event) -> None: ...
