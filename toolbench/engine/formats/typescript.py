"""Tools as TypeScript's types, as some families tell them."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.formats.values import function_of
from toolbench.engine.formats.writing import spaced_json
from toolbench.engine.messages import JsonObject

_DEEPEST = 8


def declared(function: JsonObject, *, indent: str = "", last: str = ",") -> str:
    """One function as a type: its fields `indent` in, a comma behind each and `last` behind the last."""
    comment = _comment(function)
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return f"{comment}type {function.get('name')} = () => any;"
    required = parameters.get("required", ()) if isinstance(parameters, Mapping) else ()
    commas = [*[","] * (len(properties) - 1), last]
    fields = "".join(
        _field(key, schema, key in required, comma)
        for (key, schema), comma in zip(properties.items(), commas, strict=True)
    )
    return f"{comment}type {function.get('name')} = (_: {{\n{textwrap.indent(fields, indent)}}}) => any;"


def namespace(tools: Sequence[JsonObject]) -> str:
    """All functions as the types of one namespace."""
    listed = "\n\n".join(declared(function_of(tool)) for tool in tools)
    return f"namespace functions {{\n\n{listed}\n\n}} // namespace functions"


def _comment(described: Mapping[str, Any]) -> str:
    lines = str(described.get("description") or "").splitlines()
    return "".join(f"// {line}\n" for line in lines if line.strip())


def _field(key: str, given: object, required: bool, comma: str) -> str:
    schema = given if isinstance(given, Mapping) else {}
    comment = _comment(schema)
    default = f" // default: {spaced_json(schema['default'])}" if "default" in schema else ""
    return f"{comment}{key}{'' if required else '?'}: {_typescript(schema)}{comma}{default}\n"


def _typescript(schema: object, depth: int = _DEEPEST) -> str:
    """A schema's type; of one that is no object, such as true, any."""
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return " | ".join(spaced_json(value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_typescript({**schema, "type": each}, depth - 1) for each in kind)
    if kind == "array":
        items = schema.get("items")
        return f"{_typescript(items, depth - 1) if depth else 'any'}[]"
    if kind == "object" and depth and isinstance(schema.get("properties"), Mapping):
        fields = (f"{key}: {_typescript(value, depth - 1)}" for key, value in schema["properties"].items())
        return "{" + ", ".join(fields) + "}"
    return {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}.get(str(kind), "any")
