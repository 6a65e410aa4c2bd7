from typing import Any

import pytest

from tests.engine.scripted import GET, TOOLS
from toolbench.engine.errors import PlanError
from toolbench.engine.loop.preparing import TurnSetup, prepare_turns
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import resolve
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition, ToolRegistry


def prepare(
    model: str = "m-1", *, tools: ToolRegistry = TOOLS, options: JsonObject | None = None, **policy: Any
) -> TurnSetup:
    resolved = resolve([("test", policy)]).policy
    return prepare_turns(model, resolved, system="", tools=tools, options=options or {}, seed=None)


def nested(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_a_plan_that_cannot_start_says_why() -> None:
    twice = ToolRegistry((GET, GET))
    broken = ToolRegistry((ToolDefinition("t", "", {"type": "nope"}),))
    nan: JsonObject = {"temperature": float("nan")}
    with pytest.raises(PlanError, match="no model"):
        prepare(model=" ")
    with pytest.raises(PlanError, match="no name"):
        prepare(tools=ToolRegistry((StoredToolDefinition(" "),)))
    with pytest.raises(PlanError, match="twice"):
        prepare(tools=twice)
    with pytest.raises(PlanError, match="tool t "):
        prepare(tools=broken)
    with pytest.raises(PlanError, match="deeper than 128"):
        prepare(tools=ToolRegistry((ToolDefinition("t", "", nested(5000)),)), validate_arguments=False)
    with pytest.raises(PlanError, match="options"):
        prepare(options=nan)
