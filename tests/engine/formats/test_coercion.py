"""Tagged values get their types from the tool's schema."""

from typing import Any

import pytest

from toolbench.engine.formats import parse
from toolbench.engine.formats.coercion import typed_value
from toolbench.engine.formats.values import known_tools
from toolbench.engine.tools.definitions import ToolDefinition


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, "true", "true"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '["a"]', '["a"]'),
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, " 42\n", 42),
        ({"type": "integer"}, "many", "many"),
        ({"type": "integer"}, "true", "true"),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "null"}, "None", None),
        ({"type": "array"}, "['a', 'b']", ["a", "b"]),
        ({"type": "object"}, "{'a': True}", {"a": True}),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "42", "42"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "42", 42),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": False}, "false", False),
        ({"type": "array", "enum": ["a", "b"]}, '["a"]', ["a"]),
        ({"$ref": "#/$defs/count"}, "3", 3),
        ({"$ref": "#/$defs/loop"}, "3", "3"),
        ({"properties": {"a": {}}}, '{"a": 1}', {"a": 1}),
        ({}, "3", "3"),
    ],
)
def test_a_value_has_the_type_its_schema_allows(schema: dict[str, Any], text: str, value: object) -> None:
    definitions = {"count": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}
    known = known_tools([{"name": "f", "parameters": {"properties": {"x": schema}, "$defs": definitions}}])

    read = typed_value(text, "f", "x", known)

    assert read == value
    assert type(read) is type(value)


TEXT = "<function=f><parameter=x>\n3\n</parameter></function>"


def test_without_a_schema_a_value_stays_text() -> None:
    assert parse(TEXT, format="qwen3_coder").calls[0].arguments == {"x": "3"}


def test_without_a_schema_a_value_may_be_guessed() -> None:
    assert parse(TEXT, format="qwen3_coder", guess_untyped=True).calls[0].arguments == {"x": 3}


def test_a_tool_definition_is_as_good_as_an_openai_tool() -> None:
    tool = ToolDefinition("f", "", {"type": "object", "properties": {"x": {"type": "integer"}}})

    assert parse(TEXT, tools=[tool]).calls[0].arguments == {"x": 3}
