from collections.abc import Callable
from typing import Literal

import jsonschema_rs
import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition


def test_a_tool_is_built_parameter_by_parameter() -> None:
    built = (
        ToolDefinition("get_weather", "Current weather for a place.")
        .with_parameter("location", str, "City and country")
        .with_parameter("units", Literal["celsius", "fahrenheit"], required=False, default="celsius")
        .with_parameter("days", {"type": "integer"}, minimum=1)
    )

    assert built.parameters == {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City and country"},
            "units": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "integer", "minimum": 1},
        },
        "required": ["location", "days"],
    }
    assert jsonschema_rs.is_valid(dict(built.parameters), {"location": "Oslo, Norway", "days": 1})


def test_building_leaves_the_tool_it_began_with_alone() -> None:
    begun = ToolDefinition("ping", alone=True, timeout_seconds=2)

    built = begun.with_parameter("text", str)

    assert begun.parameters == {}
    assert (built.alone, built.timeout_seconds) == (True, 2)


def test_a_parameter_said_again_replaces_the_first() -> None:
    built = ToolDefinition("ping").with_parameter("x", int).with_parameter("x", str, required=False)

    assert built.parameters == {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(PlanError, match="has no JSON Schema"):
        ToolDefinition("ping").with_parameter("x", Callable[[], object])


@pytest.mark.parametrize(
    "name", ["", " ", "get weather", "9lives", "-dashed", "größe", "a/b", "a\n", "<lambda>", "f()", "x" * 9000 + "!"]
)
def test_tool_name_that_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="cannot name a tool"):
        ToolDefinition(name)


@pytest.mark.parametrize("name", ["f", "_private", "get_weather", "get-weather", "files.read", "Tool2"])
def test_tool_name_that_is_an_identifier_is_kept(name: str) -> None:
    assert ToolDefinition(name).with_parameter("x", int).name == name


def test_stored_tool_with_an_older_name_is_still_read() -> None:
    stored = StoredToolDefinition("get weather", "Says it.")

    assert stored.with_parameter("x", int).to_openai()["function"]["name"] == "get weather"
