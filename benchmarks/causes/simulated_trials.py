"""Trials of simulated models with one fault or two, and the cause that each failed trial gets."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.simulated_trials import Cell, Trial, play_trials
from toolbench.evals.expected_calls import grade_calls
from toolbench.lab.traces.cause_columns import build_cause_columns
from toolbench.lab.traces.finished_steps import build_wire_steps
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.server import SimulatedServer

SILENT_SECONDS = 0.2  # for a model that never answers in any trial


@dataclass(frozen=True)
class PlayedTrial:
    """Outcome of a trial, and its cause code."""

    cell: Cell
    seed: int
    outcome: str
    failure_class: str
    cause: str

    @property
    def failed(self) -> bool:
        return self.outcome in ("fail", "infra")


@dataclass(slots=True)
class PersonaServer(SimulatedServer):
    """Simulated provider whose models have every fault of the personas in their name, in every trial."""

    latency_factor: float = 0

    def find_models(self, name: str) -> tuple[Persona, ...]:
        """Return the personas that a name such as `prose-only+stream-cut` lists."""
        known = load_personas()
        return tuple(replace(known[item], rate=1.0) for item in name.split("+") if item in known)


def play_with_causes(trials: Iterable[tuple[Cell, int]]) -> list[PlayedTrial]:
    """Play a trial of each cell and seed; return them in this order."""
    return [
        _build_played_trial(trial)
        for trial in play_trials(trials, server=PersonaServer(), silent_seconds=SILENT_SECONDS)
    ]


def _build_played_trial(played: Trial) -> PlayedTrial:
    steps, verdict = build_wire_steps(played.steps), played.verdict
    graded = grade_calls(steps, played.scenario.build_expected_calls(played.instance))
    trial = {"outcome": verdict.outcome, "end": played.ended.end.value, "failure_class": verdict.failure_class}
    cause = str(build_cause_columns(steps, trial, scenario=played.scenario.slug, grades=graded)["cause"])
    return PlayedTrial(played.cell, played.seed, verdict.outcome, verdict.failure_class, cause)
