"""Anthropic's dialect, held against what its own SDK makes of a schema."""

import json
from typing import Any

import pytest
from anthropic import transform_schema

from tests.engine.constraints.test_normalise_schema import TREE
from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.wire_formats.registry import get_wire_format

HARD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 9},
        "site": {"type": "string", "format": "uri"},
        "odd": {"type": "string", "format": "regex"},
        "count": {"type": "integer", "minimum": 1, "multipleOf": 2},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 5, "uniqueItems": True},
        "some": {"type": "array", "items": {"type": "null"}, "minItems": 1},
        "pick": {"enum": ["a", ["b"]]},
        "more": {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
        "any": {},
        "tree": TREE["properties"]["root"],
    },
    "required": ["name"],
    "$defs": TREE["$defs"],
}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": HARD}}


def travelling(constraint: str) -> dict[str, Any]:
    compiled = compile_constraint([TOOL], constraint, ConstraintOptions(max_calls=4))
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}], **compiled.fields}
    sent, changes = get_wire_format("anthropic").encode(body)
    assert changes == ()
    return sent


def by_the_sdk(schema: Any) -> Any:
    return transform_schema(json.loads(json.dumps(schema)))


def untyped_enums(schema: Any) -> Any:
    """The SDK leaves `type` out beside an enum, which says the same."""
    if isinstance(schema, list):
        return [untyped_enums(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: untyped_enums(part) for key, part in schema.items() if not (key == "type" and "enum" in schema)}


def test_output_config_schema_is_unchanged_by_the_sdk() -> None:
    schema = travelling("output_config")["output_config"]["format"]["schema"]

    assert by_the_sdk(schema) == untyped_enums(schema)
    assert schema["anyOf"][0]["properties"]["calls"]["minItems"] == 1
    assert '"$ref": "#/$defs/node"' not in json.dumps(schema)


def test_strict_tool_use_keeps_optional_keys_optional() -> None:
    (tool,) = travelling("strict_tool_use")["tools"]

    assert (tool["name"], tool["strict"]) == ("f", True)
    assert tool["input_schema"]["required"] == ["name"]
    assert by_the_sdk(tool["input_schema"]) == tool["input_schema"]


@pytest.mark.parametrize("constraint", ["output_config", "strict_tool_use"])
def test_compile_constraint_reports_every_dropped_keyword(constraint: str) -> None:
    told = {
        (item.path.rpartition(".properties.")[2], item.kept)
        for item in compile_constraint([TOOL], constraint, ConstraintOptions()).dropped
    }

    assert {
        ("name.pattern", ""),
        ("name.minLength", ""),
        ("name.maxLength", ""),
        ("odd.format", ""),
        ("count.minimum", ""),
        ("count.multipleOf", ""),
        ("tags.minItems", "at least 1"),
        ("tags.maxItems", ""),
        ("tags.uniqueItems", ""),
        ("pick.enum", ""),
        ("more.additionalProperties", "closed"),
        ("more.minProperties", ""),
    } <= told
    assert any(kept == "3 levels of it" for _, kept in told)
