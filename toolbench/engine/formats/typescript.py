"""Rendering of tools as TypeScript types, which some model families use."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.formats.call_writers import render_spaced_json
from toolbench.engine.formats.types import get_function
from toolbench.engine.types import JsonObject

_MAX_DEPTH = 8  # levels of arrays and objects; a deeper object is `any`, a deeper array `any[]`


def render_function_type(function: JsonObject, *, indent: str = "", last_separator: str = ",") -> str:
    """Render a tool's function as a TypeScript type.

    Args:
        function: the function of a tool.
        indent: the text before each line of the fields.
        last_separator: the text after the last field; a comma follows each other field.
    """
    comment = _render_comment(function)
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return f"{comment}type {function.get('name')} = () => any;"
    required = parameters.get("required", ()) if isinstance(parameters, Mapping) else ()
    commas = [*[","] * (len(properties) - 1), last_separator]
    fields = "".join(
        _render_field(key, schema, key in required, comma)
        for (key, schema), comma in zip(properties.items(), commas, strict=True)
    )
    return f"{comment}type {function.get('name')} = (_: {{\n{textwrap.indent(fields, indent)}}}) => any;"


def render_namespace(tools: Sequence[JsonObject]) -> str:
    """Render all functions as types of one namespace."""
    types = "\n\n".join(render_function_type(get_function(tool)) for tool in tools)
    return f"namespace functions {{\n\n{types}\n\n}} // namespace functions"


def _render_comment(described_object: Mapping[str, Any]) -> str:
    lines = str(described_object.get("description") or "").splitlines()
    return "".join(f"// {line}\n" for line in lines if line.strip())


def _render_field(key: str, schema_value: object, is_required: bool, separator: str) -> str:
    schema = schema_value if isinstance(schema_value, Mapping) else {}
    comment = _render_comment(schema)
    default = f" // default: {render_spaced_json(schema['default'])}" if "default" in schema else ""
    return f"{comment}{key}{'' if is_required else '?'}: {_render_type(schema)}{separator}{default}\n"


def _render_type(schema: object, levels_left: int = _MAX_DEPTH) -> str:
    """Render the type of a schema; it is `any` for a schema that is not an object, such as true."""
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return " | ".join(render_spaced_json(value) for value in schema["enum"])
    schema_type = schema.get("type")
    if isinstance(schema_type, list):
        return " | ".join(_render_type({**schema, "type": type_name}, levels_left) for type_name in schema_type)
    if schema_type == "array":
        items = schema.get("items")
        return f"{_render_type(items, levels_left - 1) if levels_left else 'any'}[]"
    if schema_type == "object" and levels_left and isinstance(schema.get("properties"), Mapping):
        fields = (f"{key}: {_render_type(value, levels_left - 1)}" for key, value in schema["properties"].items())
        return "{" + ", ".join(fields) + "}"
    return {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}.get(
        str(schema_type), "any"
    )
