from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from toolbench.engine.call_schema import MAX_ITEMS, MAX_STRING, arguments_schema, call_schema
from toolbench.engine.tools import ToolDefinition

STATE_PATCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "request_id": {"type": "string"},
        "ops": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"op": {"type": "string"}, "path": {"type": "string"}, "value": {}},
                "required": ["op", "path"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["request_id", "ops"],
    "additionalProperties": False,
}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(value)


def of(schema: dict[str, Any]) -> Any:
    return arguments_schema({"type": "object", "properties": {"a": schema}})["properties"]["a"]


def test_every_string_and_list_has_an_end() -> None:
    tool = ToolDefinition("state_patch", "Patch.", STATE_PATCH).to_openai()
    schema = call_schema([tool], final=True)
    jsonschema_rs.meta.validate(schema)
    for part in parts(schema):
        if part.get("type") == "string" and "enum" not in part:
            assert part["maxLength"] == MAX_STRING
        if part.get("type") == "array":
            assert part["maxItems"] == MAX_ITEMS


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (
            {
                "name": "state_patch",
                "arguments": {"request_id": "r", "ops": [{"op": "set", "path": "/a", "value": ["x"]}]},
            },
            True,
        ),
        ({"final": "Done."}, True),
        ({"name": "state_patch", "arguments": {"request_id": "r"}}, False),
        ({"name": "state_get", "arguments": {}}, False),
        ({"name": "state_patch", "arguments": {"request_id": "r", "ops": [], "more": 1}}, False),
        ({"name": "state_patch", "arguments": {"request_id": "r" * (MAX_STRING + 1), "ops": []}}, False),
        ({"final": "Done.", "name": "state_patch"}, False),
    ],
)
def test_the_schema_takes_calls_and_final_answers_and_nothing_else(answer: dict[str, Any], good: bool) -> None:
    schema = call_schema([ToolDefinition("state_patch", "Patch.", STATE_PATCH).to_openai()], final=True)
    assert jsonschema_rs.is_valid(schema, answer) is good


def test_the_tools_own_bounds_are_kept() -> None:
    assert of({"type": "string", "maxLength": 9, "minLength": 2}) == {"type": "string", "maxLength": 9, "minLength": 2}
    assert of({"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1}}) == {
        "type": "array",
        "maxItems": 3,
        "items": {"type": "integer", "minimum": 1},
    }


@pytest.mark.parametrize(
    "schema",
    [{"type": "string", "enum": ["a"]}, {"const": 1}, {"enum": [1, None]}, {"type": "string", "format": "date"}],
)
def test_what_ends_by_itself_needs_no_bound(schema: dict[str, Any]) -> None:
    assert of(schema) == schema


@pytest.mark.parametrize(
    "keyword", [{"not": {}}, {"uniqueItems": True}, {"if": {}}, {"pattern": "(?=a)"}, {"format": "klingon"}]
)
def test_keywords_that_engines_refuse_or_pass_over_are_left_out(keyword: dict[str, Any]) -> None:
    assert of({"type": "string", **keyword}) == {"type": "string", "maxLength": MAX_STRING}


def test_alternatives_keep_the_type_beside_them() -> None:
    assert of({"type": "integer", "oneOf": [{"minimum": 5}, {"const": 1}]}) == {
        "anyOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "const": 1}]
    }


def test_references_are_written_out() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}
    assert arguments_schema(schema)["properties"] == {"a": {"type": "integer"}}


@pytest.mark.parametrize("reference", ["#", "#/$defs/none", "http://elsewhere.invalid/x"])
def test_endless_and_dangling_references_still_give_a_closed_schema(reference: str) -> None:
    schema = arguments_schema({"type": "object", "properties": {"a": {"$ref": reference}}})
    assert not any("$ref" in part for part in parts(schema))
    jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize(
    "parameters", [{}, {"type": "object"}, {"type": "object", "properties": {}, "required": ["x"]}]
)
def test_a_tool_without_arguments_takes_an_empty_object(parameters: dict[str, Any]) -> None:
    assert arguments_schema(parameters) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_an_object_of_free_keys_takes_scalars() -> None:
    schema = of({"type": "object"})
    assert jsonschema_rs.is_valid(schema, {"x": 1, "y": "z"})
    assert not jsonschema_rs.is_valid(schema, {"x": {"y": 1}})


def test_several_types_stay_several() -> None:
    assert of({"type": ["string", "null"]}) == {"type": ["string", "null"], "maxLength": MAX_STRING}
