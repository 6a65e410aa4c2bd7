"""Whole trials of simulated models: the real scenarios, loop, driver and HTTP, without the database.

Whoever measures or tests simulated models plays them here: benchmarks.personas, benchmarks.causes and the tests of the
personas."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolbench.engine.events import Event, LoopResult
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.presets import build_layers
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, Instance, Scenario, Verdict
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.http.client import HttpClient
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SimulatedServer

AT_ONCE = 20
READ_SECONDS, READ_SECONDS_OF_SILENT = 120, 3  # a busy machine is slow; one persona never answers
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
    kind: str = DRAWN

    @property
    def model(self) -> str:
        return "+".join(self.personas)


@dataclass
class Recorder:
    """A gate that lets everything pass without waiting, and keeps the steps."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Trial:
    """A trial that was played, and what it left."""

    cell: Cell
    seed: int
    scenario: Scenario
    instance: Instance
    ended: LoopResult
    verdict: Verdict
    steps: tuple[ExchangeStep | ToolStep, ...]


def play_trials(
    trials: Iterable[tuple[Cell, int]],
    *,
    server: SimulatedServer | None = None,
    silent_seconds: float = READ_SECONDS_OF_SILENT,
) -> list[Trial]:
    """Return the trial of each cell and seed, in their order.

    Args:
        server: who answers; a server of the published personas where none is given.
        silent_seconds: how long is waited for a model that never answers.
    """
    return asyncio.run(_play(tuple(trials), server or SimulatedServer(latency_factor=0), silent_seconds))


def judge_trials(cell: Cell, seeds: Iterable[int]) -> list[Verdict]:
    """Return one verdict per seed, in order."""
    return [one.verdict for one in play_trials((cell, seed) for seed in seeds)]


async def _play(trials: Sequence[tuple[Cell, int]], server: SimulatedServer, silent_seconds: float) -> list[Trial]:
    free = asyncio.Semaphore(AT_ONCE)
    await server.start()

    async def one(cell: Cell, seed: int, door: HttpClient) -> Trial:
        read = silent_seconds if _is_silent(cell) else READ_SECONDS
        timeouts = Timeouts(connect=30, read=read, deadline=600)
        endpoint = Endpoint(server.url, cell.model, key=server.key, sends_seed=True, timeouts=timeouts, wire=cell.wire)
        async with free:
            return await _trial(cell, seed, endpoint, door)

    try:
        async with HttpClient() as door:
            return await asyncio.gather(*(one(cell, seed, door) for cell, seed in trials))
    finally:
        await server.stop()


async def _trial(cell: Cell, seed: int, endpoint: Endpoint, door: HttpClient) -> Trial:
    scenario = scenarios.lookup_scenario(cell.scenario)
    instance = scenario.draw_instance(seed, kind=cell.kind)
    workspace, recorder = scenario.open(instance), Recorder()
    world = RunContext(endpoint, door, workspace.call, recorder, recorder, time.monotonic, CancellationToken(), _ignore)
    ended = await drive(_plan(cell, instance, seed), world)
    verdict = scenario.judge(instance, ended, workspace)
    return Trial(cell, seed, scenario, instance, ended, verdict, tuple(recorder.steps))


def _plan(cell: Cell, instance: Instance, seed: int) -> LoopPlan:
    presets = [preset for one in cell.personas for preset in load_personas()[one].workarounds]
    method = ("method", {"method": cell.method, "constraint": "response_format"})
    layers = [*build_layers(cell.strategy, workarounds=presets), method, ("scenario", instance.layer)]
    return LoopPlan(
        model=cell.model,
        policy=resolve_policy(layers).policy,
        system=instance.system,
        user_text=instance.user_text,
        history=instance.history,
        tools=ToolRegistry(instance.tools),
        seed=seed,
        is_streamed=cell.stream,
        wire=cell.wire,
    )


def _is_silent(cell: Cell) -> bool:
    return any(load_personas()[one].drift == NEVER_ANSWERS for one in cell.personas)


def _ignore(event: Event) -> None: ...
