"""Trials of simulated models with the real scenarios, loop, driver and HTTP, without the database.

`benchmarks.personas`, `benchmarks.causes` and the tests of simulated models use them.
"""

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

MAX_CONCURRENT_TRIALS = 20
READ_SECONDS = 120  # for an answer; a busy machine is slow
SILENT_READ_SECONDS = 3  # for an answer of a model that never answers
NEVER_ANSWERS = "never_answers"


@dataclass(frozen=True, order=True)
class Cell:
    """Simulated model in one scenario.

    Attributes:
        personas: the persona of the model, or two if it has the faults of both.
        kind: instance kind, drawn or published wording.
    """

    personas: tuple[str, ...]
    scenario: str
    strategy: str = "raw"
    method: str = "native"
    stream: bool = False
    wire: str = "chat"
    kind: str = DRAWN

    @property
    def model(self) -> str:
        """Name of the model at the simulated provider."""
        return "+".join(self.personas)


@dataclass
class Recorder:
    """Recorder and request gate: keeps the steps, allows every request, and does not wait before retries."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        """Keep a step."""
        self.steps.append(step)

    async def reserve(self) -> None:
        """Allow a request at once."""

    async def back_off(self, seconds: float) -> None:
        """Return at once."""


@dataclass(frozen=True)
class Trial:
    """Finished trial, with its verdict and steps."""

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
    silent_seconds: float = SILENT_READ_SECONDS,
) -> list[Trial]:
    """Run a trial of each cell and seed; return them in this order.

    Args:
        trials: pairs of cell and seed.
        server: simulated provider, not started; None for one with the published personas.
        silent_seconds: time limit for answers of a model that never answers.
    """
    return asyncio.run(_play(tuple(trials), server or SimulatedServer(latency_factor=0), silent_seconds))


def judge_trials(cell: Cell, seeds: Iterable[int]) -> list[Verdict]:
    """Run a trial of a cell for each seed; return the verdicts in this order."""
    return [trial.verdict for trial in play_trials((cell, seed) for seed in seeds)]


async def _play(trials: Sequence[tuple[Cell, int]], server: SimulatedServer, silent_seconds: float) -> list[Trial]:
    slots = asyncio.Semaphore(MAX_CONCURRENT_TRIALS)
    await server.start()

    async def run(cell: Cell, seed: int, client: HttpClient) -> Trial:
        read = silent_seconds if _is_silent(cell) else READ_SECONDS
        timeouts = Timeouts(connect=30, read=read, deadline=600)
        endpoint = Endpoint(server.url, cell.model, key=server.key, sends_seed=True, timeouts=timeouts, wire=cell.wire)
        async with slots:
            return await _run_trial(cell, seed, endpoint, client)

    try:
        async with HttpClient() as client:
            return await asyncio.gather(*(run(cell, seed, client) for cell, seed in trials))
    finally:
        await server.stop()


async def _run_trial(cell: Cell, seed: int, endpoint: Endpoint, client: HttpClient) -> Trial:
    scenario = scenarios.lookup_scenario(cell.scenario)
    instance = scenario.draw_instance(seed, kind=cell.kind)
    workspace, recorder = scenario.open(instance), Recorder()
    context = RunContext(
        endpoint, client, workspace.call, recorder, recorder, time.monotonic, CancellationToken(), _ignore_event
    )
    ended = await drive(_build_plan(cell, instance, seed), context)
    verdict = scenario.judge(instance, ended, workspace)
    return Trial(cell, seed, scenario, instance, ended, verdict, tuple(recorder.steps))


def _build_plan(cell: Cell, instance: Instance, seed: int) -> LoopPlan:
    presets = [preset for slug in cell.personas for preset in load_personas()[slug].workarounds]
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
    return any(load_personas()[slug].drift == NEVER_ANSWERS for slug in cell.personas)


def _ignore_event(event: Event) -> None: ...
