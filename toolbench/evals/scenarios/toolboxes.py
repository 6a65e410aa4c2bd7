"""The tools that a task offers: those it needs, those most similar to them, and random others."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import build_definition

ToolPool = tuple[ToolDefinition, ...]
SIMILAR_TOOLS = 3  # always offered, as near-duplicates


def read_pool(rows: Any) -> ToolPool:
    """Return the tools of a list of definitions, or of {verbs, nouns, parameters}: one for each verb and noun."""
    if isinstance(rows, Mapping):
        return tuple(
            _build_tool(verb, noun, rows["parameters"]) for verb, noun in product(rows["verbs"], rows["nouns"])
        )
    return tuple(build_definition(row) for row in rows)


def choose_tools(pool: ToolPool, names: Sequence[str], offered: int, draw: SeededDraws) -> ToolPool:
    """Return `offered` tools of the pool (0: all) in random order.

    They include the wanted tools and the ones most similar to them.
    """
    rest = [tool for tool in pool if tool.name not in names]
    by_likeness = sorted(
        rest, key=lambda tool: -max((_count_shared_words(tool.name, name) for name in names), default=0)
    )
    near = by_likeness[:SIMILAR_TOOLS]
    rest_tools = draw.source.sample([tool for tool in rest if tool not in near], len(rest) - len(near))
    kept = [*(tool for tool in pool if tool.name in names), *near, *rest_tools][: offered or len(pool)]
    return tuple(draw.shuffle(kept))


def _build_tool(verb: str, noun: str, parameters: Any) -> ToolDefinition:
    return ToolDefinition(f"{verb}_{noun.replace(' ', '_')}", f"Does one thing: {verb} one {noun}.", parameters)


def _count_shared_words(name: str, other: str) -> int:
    return len(set(name.split("_")) & set(other.split("_")))
