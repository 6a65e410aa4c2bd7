"""Whether personas pass as often as they publish: `python -m benchmarks.personas`.

Every persona plays drawn tool scenarios through the real server, loop, driver and verdicts, in strategies raw and
production, native and not streamed. What is counted has to lie within the exact binomial interval that holds 999 of
1,000 counts; where the published rate is 0 or 1, it has to be that."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from scipy import stats

from toolbench.engine.events import Event
from toolbench.engine.loop.loop import LoopPlan
from toolbench.engine.policy.policy import resolve
from toolbench.engine.policy.presets import layers_for
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.evals import scenarios
from toolbench.evals.trials import DRAWN, Scenario, Verdict
from toolbench.providers.cancelling import Cancel
from toolbench.providers.door import Door
from toolbench.providers.driving import World, drive
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.recording import ExchangeStep, ToolStep
from toolbench.providers.simulated.personas import Persona, all_personas
from toolbench.providers.simulated.server import SimulatedServer

TRIALS, AT_ONCE, SURE = 200, 20, 0.999
STRATEGIES = ("raw", "production")
READ_SECONDS, READ_SECONDS_OF_SILENT = 120, 3  # a busy machine is slow; one persona never answers


@dataclass(frozen=True)
class Measured:
    """Passes of a persona in a strategy, over scenarios that publish the same rate."""

    persona: str
    strategy: str
    rate: float
    passed: int
    trials: int

    @property
    def holds(self) -> bool:
        low, high = stats.binom.interval(SURE, self.trials, self.rate)
        return bool(low <= self.passed <= high)

    def __str__(self) -> str:
        verdict = "yes" if self.holds else "NO"
        return f"| {self.persona} | {self.strategy} | {self.rate} | {self.passed} of {self.trials} | {verdict} |"


@dataclass
class Notes:
    """A gate and recorder that let everything pass, without waiting."""

    steps: list[ExchangeStep | ToolStep] = field(default_factory=list)

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class SimulatedRuns:
    """The simulated server and a client of it."""

    server: SimulatedServer
    door: Door
    gate: asyncio.Semaphore

    async def play(self, persona: Persona, strategy: str, scenario: Scenario, seed: int) -> Verdict:
        instance = scenario.draw(seed, kind=DRAWN)
        workspace = scenario.open(instance)
        layers = layers_for(strategy, workarounds=persona.workarounds)
        plan = LoopPlan(
            model=persona.slug,
            policy=resolve([*layers, ("scenario", instance.layer)]).policy,
            system=instance.system,
            user_text=instance.user_text,
            history=instance.history,
            tools=ToolRegistry(instance.tools),
            seed=seed,
        )
        read = READ_SECONDS_OF_SILENT if persona.drift == "never_answers" else READ_SECONDS
        timeouts = Timeouts(connect=30, read=read, deadline=600)
        endpoint = Endpoint(self.server.url, persona.slug, key=self.server.key, seeded=True, timeouts=timeouts)
        notes = Notes()
        async with self.gate:
            world = World(endpoint, self.door, workspace.call, notes, notes, time.monotonic, Cancel(), _ignore)
            return scenario.judge(instance, await drive(plan, world), workspace)


def _ignore(event: Event) -> None: ...


def plans(persona: Persona, trials: int) -> Iterator[tuple[str, float, list[tuple[Scenario, int]]]]:
    """By strategy and published rate: which scenario is tried with which seed, `trials` for each strategy."""
    members = scenarios.groups()["tools"]
    for strategy in STRATEGIES:
        by_rate: dict[float, list[tuple[Scenario, int]]] = {}
        for seed in range(trials):
            scenario = members[seed % len(members)]
            rates = persona.true_rates[scenario.slug if scenario.slug in persona.true_rates else "tools"]
            by_rate.setdefault(rates[strategy], []).append((scenario, seed))
        for rate, tried in by_rate.items():
            yield strategy, rate, tried


async def measure(slugs: Sequence[str], trials: int) -> int:
    """Print a line per persona, strategy and rate; return how many do not hold."""
    server, failed = SimulatedServer(latency=0), 0
    await server.start()
    try:
        async with Door() as door:
            runs = SimulatedRuns(server, door, asyncio.Semaphore(AT_ONCE))
            for slug in slugs:
                persona = all_personas()[slug]
                for strategy, rate, tried in plans(persona, trials):
                    verdicts = await asyncio.gather(*(runs.play(persona, strategy, *one) for one in tried))
                    passed = sum(verdict.task_pass is True for verdict in verdicts)
                    line = Measured(slug, strategy, rate, passed, len(tried))
                    print(line, flush=True)
                    failed += not line.holds
    finally:
        await server.stop()
    return failed


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.personas", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("personas", nargs="*", default=list(all_personas()))
    given = parser.parse_args(None if arguments is None else list(arguments))
    print("| persona | strategy | published | passed | holds |\n|---|---|---|---|---|")
    return min(asyncio.run(measure(given.personas, given.trials)), 1)


if __name__ == "__main__":
    sys.exit(main())
