"""Which tools a task shows: those it wants, those most like them, and others by lot."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import definition

Pool = tuple[ToolDefinition, ...]
NEAR = 3  # near-duplicates that are always there


def read_pool(rows: Any) -> Pool:
    """A list of definitions, or {verbs, nouns, parameters}: one tool for each verb and noun."""
    if isinstance(rows, Mapping):
        return tuple(_made(verb, noun, rows["parameters"]) for verb, noun in product(rows["verbs"], rows["nouns"]))
    return tuple(definition(row) for row in rows)


def choose(pool: Pool, wanted: Sequence[str], offered: int, draw: Draw) -> Pool:
    """`offered` tools of the pool (0: all) in drawn order, the wanted and their nearest among them."""
    rest = [tool for tool in pool if tool.name not in wanted]
    near = sorted(rest, key=lambda tool: -max((_likeness(tool.name, name) for name in wanted), default=0))[:NEAR]
    others = draw.source.sample([tool for tool in rest if tool not in near], len(rest) - len(near))
    kept = [*(tool for tool in pool if tool.name in wanted), *near, *others][: offered or len(pool)]
    return tuple(draw.shuffled(kept))


def _made(verb: str, noun: str, parameters: Any) -> ToolDefinition:
    return ToolDefinition(f"{verb}_{noun.replace(' ', '_')}", f"Does one thing: {verb} one {noun}.", parameters)


def _likeness(name: str, other: str) -> int:
    return len(set(name.split("_")) & set(other.split("_")))
