"""Tool definitions of the scenarios, from data/state_tools.json."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table


@cache
def load_state_tools() -> tuple[ToolDefinition, ...]:
    """Return state_get, state_patch, and facts_commit, which no model may see or run."""
    return tuple(build_definition(row) for row in read_table("state_tools")["tools"])


@cache
def load_distractors() -> Mapping[str, tuple[ToolDefinition, Any]]:
    """Return tools unrelated to any task, by name, each with its fixed answer."""
    return {row["name"]: (build_definition(row), row["answer"]) for row in read_table("state_tools")["distractors"]}


def build_definition(row: JsonObject) -> ToolDefinition:
    """Return the definition of a row: name, description, parameters, and exposed_to_model if it is false."""
    return ToolDefinition(row["name"], row["description"], row["parameters"], row.get("exposed_to_model", True))
