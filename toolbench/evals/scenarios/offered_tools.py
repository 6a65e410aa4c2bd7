"""Choice of the tools that a task offers: needed ones, those most similar to them, and random ones."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import build_definition

ToolPool = tuple[ToolDefinition, ...]
SIMILAR_TOOLS = 3  # offered before random ones, since a model easily confuses them with the needed tools


def build_pool(rows: Any) -> ToolPool:
    """Return the tools of a pack.

    Args:
        rows: A list of definitions, or an object {verbs, nouns, parameters} that stands for one tool for each verb and
            noun.
    """
    if isinstance(rows, Mapping):
        return tuple(
            _build_tool(verb, noun, rows["parameters"]) for verb, noun in product(rows["verbs"], rows["nouns"])
        )
    return tuple(build_definition(row) for row in rows)


def choose_tools(pool: ToolPool, names: Sequence[str], offered: int, draw: SeededDraws) -> ToolPool:
    """Return the tools that an instance offers.

    Their order is random; if `draw.plain`, the needed tools come first, then the similar ones, then random ones.

    Args:
        pool: The tools of the pack.
        names: The names of the tools that the task needs. They are chosen first, then the most similar ones.
        offered: The number of tools to offer; 0 for all.
        draw: The random draws of the instance.
    """
    rest = [tool for tool in pool if tool.name not in names]
    by_similarity = sorted(
        rest, key=lambda tool: -max((_count_shared_words(tool.name, name) for name in names), default=0)
    )
    similar = by_similarity[:SIMILAR_TOOLS]
    random_tools = draw.source.sample([tool for tool in rest if tool not in similar], len(rest) - len(similar))
    chosen = [*(tool for tool in pool if tool.name in names), *similar, *random_tools][: offered or len(pool)]
    return tuple(draw.shuffle(chosen))


def _build_tool(verb: str, noun: str, parameters: Any) -> ToolDefinition:
    return ToolDefinition(f"{verb}_{noun.replace(' ', '_')}", f"Does one thing: {verb} one {noun}.", parameters)


def _count_shared_words(name: str, other: str) -> int:
    return len(set(name.split("_")) & set(other.split("_")))
