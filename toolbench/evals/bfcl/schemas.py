"""Conversion of BFCL's parameter descriptions to JSON Schemas."""

from typing import Any

from toolbench.engine.types import JsonObject

_JSON_TYPE_BY_BFCL_TYPE = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "list": "array",
    "bool": "boolean",
    "any": "string",
}


def build_json_schema(description: JsonObject) -> JsonObject:
    """Return a description of parameters as a JSON Schema, in which the types have JSON Schema's names."""
    return {key: _convert_member(key, value) for key, value in description.items()}


def _convert_member(key: str, value: Any) -> Any:
    if key == "type" and isinstance(value, str):
        return _JSON_TYPE_BY_BFCL_TYPE.get(value, value)
    if key == "properties" and isinstance(value, dict):
        return {name: build_json_schema(child) for name, child in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return build_json_schema(value)
    return value
