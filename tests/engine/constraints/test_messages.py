"""Schemas for Anthropic, compared with the output of its own SDK."""

import json
from typing import Any

import pytest
from anthropic import transform_schema

from tests.engine.constraints.test_normalise_schema import TREE
from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.wire_formats.registry import get_wire_format

PARAMETERS: dict[str, Any] = {
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
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": PARAMETERS}}


def encode_request(constraint: str) -> dict[str, Any]:
    compiled = compile_constraint([TOOL], constraint, ConstraintOptions(max_calls=4))
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}], **compiled.request_fields}
    sent, changes = get_wire_format("anthropic").encode(body)
    assert changes == ()
    return sent


def transform_with_sdk(schema: Any) -> Any:
    return transform_schema(json.loads(json.dumps(schema)))


def remove_enum_types(schema: Any) -> Any:
    """Return the schema without the `type` of enums, which the SDK leaves out, too."""
    if isinstance(schema, list):
        return [remove_enum_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: remove_enum_types(part) for key, part in schema.items() if not (key == "type" and "enum" in schema)}


def test_output_config_schema_is_unchanged_by_the_sdk() -> None:
    schema = encode_request("output_config")["output_config"]["format"]["schema"]

    assert transform_with_sdk(schema) == remove_enum_types(schema)
    assert schema["anyOf"][0]["properties"]["calls"]["minItems"] == 1
    assert '"$ref": "#/$defs/node"' not in json.dumps(schema)


def test_strict_tool_use_keeps_optional_keys_optional() -> None:
    (tool,) = encode_request("strict_tool_use")["tools"]

    assert (tool["name"], tool["strict"]) == ("f", True)
    assert tool["input_schema"]["required"] == ["name"]
    assert transform_with_sdk(tool["input_schema"]) == tool["input_schema"]


@pytest.mark.parametrize("constraint", ["output_config", "strict_tool_use"])
def test_compile_constraint_reports_every_dropped_keyword(constraint: str) -> None:
    dropped = {
        (item.path.rpartition(".properties.")[2], item.replacement)
        for item in compile_constraint([TOOL], constraint, ConstraintOptions()).dropped_keywords
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
        ("more.additionalProperties", "no other keys"),
        ("more.minProperties", ""),
    } <= dropped
    assert any(kept.startswith("3 levels of it; inside them, any text") for _, kept in dropped)
