from collections.abc import Callable
from typing import Literal

import jsonschema_rs
import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition


def test_with_parameter_builds_schema_of_all_parameters() -> None:
    tool = (
        ToolDefinition("get_weather", "Current weather for a place.")
        .with_parameter("location", str, "City and country")
        .with_parameter("units", Literal["celsius", "fahrenheit"], required=False, default="celsius")
        .with_parameter("days", {"type": "integer"}, minimum=1)
    )

    assert tool.parameters == {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City and country"},
            "units": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "integer", "minimum": 1},
        },
        "required": ["location", "days"],
    }
    assert jsonschema_rs.is_valid(dict(tool.parameters), {"location": "Oslo, Norway", "days": 1})


def test_with_parameter_leaves_original_tool_unchanged() -> None:
    original = ToolDefinition("ping", alone=True, timeout_seconds=2)

    tool = original.with_parameter("text", str)

    assert original.parameters == {}
    assert (tool.alone, tool.timeout_seconds) == (True, 2)


def test_with_parameter_replaces_parameter_of_same_name() -> None:
    tool = ToolDefinition("ping").with_parameter("x", int).with_parameter("x", str, required=False)

    assert tool.parameters == {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}


def test_with_parameter_refuses_type_without_schema() -> None:
    with pytest.raises(PlanError, match="has no JSON Schema"):
        ToolDefinition("ping").with_parameter("x", Callable[[], object])


@pytest.mark.parametrize(
    "name", ["", " ", "get weather", "9lives", "-dashed", "größe", "a/b", "a\n", "<lambda>", "f()", "x" * 9000 + "!"]
)
def test_tool_definition_refuses_invalid_name(name: str) -> None:
    with pytest.raises(PlanError, match="cannot name a tool"):
        ToolDefinition(name)


@pytest.mark.parametrize("name", ["f", "_private", "get_weather", "get-weather", "files.read", "Tool2"])
def test_tool_definition_accepts_valid_name(name: str) -> None:
    assert ToolDefinition(name).with_parameter("x", int).name == name


def test_stored_tool_definition_accepts_invalid_name() -> None:
    stored = StoredToolDefinition("get weather", "Says it.")

    assert stored.with_parameter("x", int).to_openai()["function"]["name"] == "get weather"
