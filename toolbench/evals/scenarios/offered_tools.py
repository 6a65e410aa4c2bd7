"""Choice of the tools that a task offers: needed ones, those most similar to them, and random ones."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import build_definition

ToolPool = tuple[ToolDefinition, ...]
_SIMILAR_TOOL_COUNT = 3  # chosen before random ones, since a model easily confuses similar tools with needed ones


def build_pool(rows: Any) -> ToolPool:
    """Return the tools of a pack.

    Args:
        rows: A list of definitions, or an object {verbs, nouns, parameters} that stands for one tool for each pair of
            a verb and a noun, all with these parameters.
    """
    if isinstance(rows, Mapping):
        return tuple(
            _build_tool(verb, noun, rows["parameters"]) for verb, noun in product(rows["verbs"], rows["nouns"])
        )
    return tuple(build_definition(row) for row in rows)


def choose_tools(pool: ToolPool, needed_names: Sequence[str], offered: int, draw: SeededDraws) -> ToolPool:
    """Return the tools that an instance offers.

    The needed tools are chosen first, then the three whose names share the most words with the name of a needed tool,
    then random ones. If no tool is needed, the first three of the pool come before random ones. The chosen tools stay
    in this order if `draw.plain`; else they are shuffled.

    Args:
        pool: The tools of the pack.
        needed_names: The names of the tools that the task needs.
        offered: The number of tools to offer; 0 for all.
        draw: The random draws of the instance.
    """
    rest = [tool for tool in pool if tool.name not in needed_names]
    by_similarity = sorted(
        rest, key=lambda tool: -max((_count_shared_words(tool.name, name) for name in needed_names), default=0)
    )
    similar = by_similarity[:_SIMILAR_TOOL_COUNT]
    random_tools = draw.source.sample([tool for tool in rest if tool not in similar], len(rest) - len(similar))
    chosen = [*(tool for tool in pool if tool.name in needed_names), *similar, *random_tools][: offered or len(pool)]
    return tuple(draw.shuffle(chosen))


def _build_tool(verb: str, noun: str, parameters: Any) -> ToolDefinition:
    return ToolDefinition(f"{verb}_{noun.replace(' ', '_')}", f"Does one thing: {verb} one {noun}.", parameters)


def _count_shared_words(name: str, other: str) -> int:
    return len(set(name.split("_")) & set(other.split("_")))
