"""Second measurement: does a failed trial of a model with two faults get a cause of one of them?"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from benchmarks.causes.simulated_trials import PlayedTrial, play_with_causes
from benchmarks.causes.single_faults import list_expected_causes
from benchmarks.simulated_trials import Cell
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.answer import SHAPE_FAULTS
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.wire_formats import CHAT

DEFAULT_SEED = 11
DEFAULT_PAIRS = 300
SCENARIOS = ("happy_path", "weather", "long_arguments_guard", "recovery_hint")
STREAM_FAULT_GROUP = "Streams"
_CALL: JsonObject = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "state_get", "arguments": '{"workspace_id": "w-1", "path": "/draft"}'},
}
_COMPLETION: JsonObject = {
    "choices": [{"message": {"content": None, "tool_calls": [_CALL]}, "finish_reason": "tool_calls"}],
    "usage": {"completion_tokens": 9},
}


@dataclass(frozen=True)
class JudgedTrial:
    """Failed trial of a model with both faults.

    Attributes:
        accepted: the causes of each fault that fails the trial alone; empty if neither does.
    """

    played: PlayedTrial
    accepted: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.played.cause in self.accepted


def draw_pairs(count: int = DEFAULT_PAIRS, seed: int = DEFAULT_SEED) -> list[tuple[Cell, int]]:
    """Return each pair's cell and seed; a second fault that would have nothing to change is drawn again."""
    return list(islice(_iter_pairs(Random(seed)), count))


def judge_pairs(pairs: Sequence[tuple[Cell, int]], slugs: Sequence[str] = SCENARIOS) -> list[JudgedTrial]:
    """Play each pair in every scenario, and its faults alone; return the failed trials of the pairs."""
    together = [(replace(cell, scenario=slug), seed) for cell, seed in pairs for slug in slugs]
    alone = {(replace(cell, personas=(persona,)), seed) for cell, seed in together for persona in cell.personas}
    order = sorted(alone)
    failed = {(trial.cell, trial.seed): trial.failed for trial in play_with_causes(order)}
    return [
        JudgedTrial(trial, _list_accepted_causes(trial, failed)) for trial in play_with_causes(together) if trial.failed
    ]


def iter_report_lines(judged: Sequence[JudgedTrial], pairs: int) -> Iterator[str]:
    """Yield the share as lines, and a line for every trial that got the cause of neither fault."""
    alone = [item for item in judged if item.accepted]
    right = sum(item.right for item in alone)
    yield f"{pairs} pairs, {len(judged):,} failed trials; in {len(alone):,} of them one fault alone fails too."
    yield f"{right:,} of these ({compute_share(judged):.2%}) get a cause of such a fault."
    for item in alone:
        if not item.right:
            cell = item.played.cell
            yield f"missed: {cell.model} in {cell.scenario}, {cell.strategy}: {item.played.cause}, not {item.accepted}"


def compute_share(judged: Sequence[JudgedTrial]) -> float:
    """Return the share of accepted causes where one fault alone fails the trial too; 1 without trials."""
    alone = [item for item in judged if item.accepted]
    return sum(item.right for item in alone) / len(alone) if alone else 1.0


def _iter_pairs(draw: Random) -> Iterator[tuple[Cell, int]]:
    faulty = [persona for persona in load_personas().values() if persona.drift]
    while True:
        first, second = draw.sample(faulty, 2)
        strategy, seed = draw.choice(("raw", "production")), draw.randrange(10_000)
        if first.drift != second.drift and is_composable(first, second):
            stream = STREAM_FAULT_GROUP in (first.group, second.group)
            yield Cell((first.slug, second.slug), "", strategy, stream=stream), seed


def is_composable(first: Persona, second: Persona) -> bool:
    """Return whether the second fault can be applied to an answer that the first has changed.

    Two faults of a stream remove the same events, so the second one finds nothing to change.
    """
    if first.drift in CHAT.stream_faults and second.drift in CHAT.stream_faults:
        return False
    sample, draw = deepcopy(_COMPLETION), Random(0)
    try:
        for persona in (first, second):
            if persona.drift in SHAPE_FAULTS:
                SHAPE_FAULTS[persona.drift](sample, draw)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return False
    return True


def _list_accepted_causes(trial: PlayedTrial, failed: Mapping[tuple[Cell, int], bool]) -> tuple[str, ...]:
    cells = [replace(trial.cell, personas=(slug,)) for slug in trial.cell.personas]
    failing = [cell for cell in cells if failed[(cell, trial.seed)]]
    return tuple(cause for cell in failing for cause in list_expected_causes(cell, trial.seed))
