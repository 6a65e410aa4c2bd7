"""Tool definitions of built-in scenarios, from the rows of data files."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table


@cache
def load_state_tools() -> tuple[ToolDefinition, ...]:
    """Return the tools state_get, state_patch and facts_commit; the last one is never offered to a model."""
    return tuple(build_definition(row) for row in read_table("state_tools")["tools"])


@cache
def load_distractors() -> Mapping[str, tuple[ToolDefinition, Any]]:
    """Return (tool, fixed answer) by name for the tools that no task needs."""
    return {row["name"]: (build_definition(row), row["answer"]) for row in read_table("state_tools")["distractors"]}


def build_definition(row: JsonObject) -> ToolDefinition:
    """Return the tool definition of a row of a data file; without `exposed_to_model` a model sees the tool."""
    return ToolDefinition(row["name"], row["description"], row["parameters"], row.get("exposed_to_model", True))
