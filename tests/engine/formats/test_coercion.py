"""Tests of converting tagged values to the types of the tool's schema."""

from typing import Any

import pytest

from toolbench.engine.formats import parse
from toolbench.engine.formats.coercion import convert_value, find_subschema, iterate_subschemas
from toolbench.engine.formats.types import build_tool_schemas
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
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "None", "None"),
        ({"type": ["string", "null"]}, "42", "42"),
        ({"type": "string", "nullable": True}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"type": ["string", "null"], "enum": ["null", "a", None]}, "null", "null"),
        ({"enum": ["a", None]}, "null", None),
        ({"enum": ["auto", 1, 2.5, True]}, "auto", "auto"),
        ({"enum": ["auto", 1, 2.5, True]}, "1", 1),
        ({"enum": ["auto", 1, 2.5, True]}, "2.5", 2.5),
        ({"enum": ["auto", 1, 2.5, True]}, "true", True),
        ({"enum": ["auto", 1, 2.5, True]}, "7", "7"),
        ({"enum": ["1", 1]}, "1", "1"),
        ({"type": "number", "enum": [0.5, 1]}, "1.0", 1),
        ({"enum": ["a", "b"]}, "\nb\n", "b"),
        ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "5", 5),
        ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, "auto", "auto"),
        ({"oneOf": [{"const": "all"}, {"type": "array", "items": {"type": "string"}}]}, '["a"]', ["a"]),
        ({"anyOf": [{"type": "string", "enum": ["none"]}, {"$ref": "#/$defs/count"}]}, "5", 5),
        ({"anyOf": [{"enum": ["auto"]}, {"type": "string"}]}, "5", "5"),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "5.5", "5.5"),
        ({"type": ["integer", "number"]}, "5.0", 5.0),
        ({"type": "integer"}, "1e300", "1e300"),
        ({"type": "int64"}, "5.0", 5),
        ({"type": "uint8"}, "5", 5),
        ({"type": "float64"}, "5", 5),
        ({"type": "float64"}, "5.5", 5.5),
        ({"type": "double"}, "5.0", 5.0),
        ({"type": "Dict"}, "{'a': 1}", {"a": 1}),
        ({"type": "dict[str, int]"}, '{"a": 1}', {"a": 1}),
        ({"type": "list"}, '["a"]', ["a"]),
        ({"type": "List[str]"}, '["a"]', ["a"]),
        ({"type": "array<string>"}, '["a"]', ["a"]),
        ({"type": "tuple"}, "(1, 2)", [1, 2]),
        ({"type": "bool"}, "True", True),
        ({"type": "STRING"}, "42", "42"),
        ({"type": "str"}, "42", "42"),
        ({"type": "any"}, "42", "42"),
        ({"type": "date"}, "2026", "2026"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": 5}, "3", "3"),
        ({"type": {"a": 1}}, "3", "3"),
        ({"type": [["integer"]], "enum": 7, "anyOf": "x"}, "3", "3"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "42", "42"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "42", 42),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": False}, "false", False),
        ({"type": "array", "enum": ["a", "b"]}, '["a"]', ["a"]),
        ({"$ref": "#/$defs/count"}, "3", 3),
        ({"$ref": "#/$defs/loop"}, "3", "3"),
        ({"$ref": "#/$defs/a~1b%25"}, "3", 3),
        ({"$ref": "#/$defs/numbers/anyOf/1"}, "3", 3),
        ({"$ref": "#/$defs/numbers/anyOf/2"}, "3", "3"),
        ({"$ref": "#"}, '{"x": 1}', {"x": 1}),
        ({"$ref": "#/$defs/many"}, "3", 3),
        ({"properties": {"a": {}}}, '{"a": 1}', {"a": 1}),
        ({}, "3", "3"),
    ],
)
def test_convert_value_returns_the_type_of_the_schema(schema: dict[str, Any], text: str, value: object) -> None:
    definitions = {
        "count": {"type": "integer"},
        "loop": {"$ref": "#/$defs/loop"},
        "a/b%": {"type": "integer"},
        "numbers": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        "many": {"anyOf": [*[{"$ref": "#/$defs/many"} for _ in range(40)], {"type": "integer"}]},
    }
    tool_schemas = build_tool_schemas(
        [{"name": "f", "parameters": {"properties": {"x": schema}, "$defs": definitions}}]
    )

    converted = convert_value(text, "f", "x", tool_schemas)

    assert converted == value
    assert type(converted) is type(value)


TEXT = "<function=f><parameter=x>\n3\n</parameter></function>"


def test_parse_keeps_value_without_schema_as_text() -> None:
    assert parse(TEXT, format="qwen3_coder").calls[0].arguments == {"x": "3"}


def test_parse_with_guess_untyped_converts_value_without_schema() -> None:
    assert parse(TEXT, format="qwen3_coder", guess_untyped=True).calls[0].arguments == {"x": 3}


def test_parse_accepts_tool_definition_as_schema() -> None:
    tool = ToolDefinition("f", "", {"type": "object", "properties": {"x": {"type": "integer"}}})

    assert parse(TEXT, tools=[tool]).calls[0].arguments == {"x": 3}


def test_parse_converts_type_names_of_vendors() -> None:
    start_tag, end_tag = '<|open|>argument key="x" type="int64"<|sep|>', "<|close|>argument<|sep|>"
    text = f'<|open|>call tool="f" index="1"<|sep|>{start_tag}5.0{end_tag}<|close|>call<|sep|>'

    assert parse(text, format="kimi_k3").calls[0].arguments == {"x": 5}


@pytest.mark.parametrize(
    ("key", "subschema"), [("any", {}), ("date", {"type": "string"}), ("count", {"type": "integer"})]
)
def test_find_subschema_of_empty_property_schema_is_empty(key: str, subschema: dict[str, Any]) -> None:
    schema = {"properties": {"any": {}, "date": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    assert find_subschema(schema, key, {}) == subschema


def test_find_subschema_finds_property_in_the_last_of_many_branches() -> None:
    branches = [{"properties": {f"key_{number}": {"type": "integer"}}} for number in range(40)]
    assert find_subschema({"oneOf": branches}, "key_39", {}) == {"type": "integer"}


def test_iterate_subschemas_yields_each_schema_once() -> None:
    node: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/node"}, {"type": "null"}]}
    schema = {"$ref": "#/$defs/node"}
    assert list(iterate_subschemas(schema, {"$defs": {"node": node}})) == [schema, node, *node["anyOf"]]


@pytest.mark.parametrize("reference", ["#", "#/properties/child", "#/$defs/a~1b"])
def test_convert_value_follows_reference_to_any_part(reference: str) -> None:
    properties = {"child": {"type": "object"}, "next": {"$ref": reference}}
    schema = {"type": "object", "properties": properties, "$defs": {"a/b": {"type": "object"}}}
    offered_tools = build_tool_schemas((ToolDefinition("f", "", schema),))
    assert convert_value('{"a": 1}', "f", "next", offered_tools) == {"a": 1}
