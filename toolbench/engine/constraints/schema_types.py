"""The JSON types of schemas and of values."""

from typing import Any

from toolbench.engine.types import JsonObject

# The JSON type of values to which a keyword applies.
IMPLIED_TYPES = {
    "properties": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "pattern": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}


def list_types(schema: JsonObject) -> list[str]:
    """Return the JSON types that a schema declares, or else the type for the first of IMPLIED_TYPES among its keywords.

    `nullable` adds `null`. References are not followed. The list is empty if the schema allows any type, or if it lists
    its values and declares no type.
    """
    declared_type = schema.get("type")
    if isinstance(declared_type, str):
        names = [declared_type]
    else:
        names = declared_type if isinstance(declared_type, list) else []
    if not names and "enum" not in schema and "const" not in schema:
        names = [json_type for keyword, json_type in IMPLIED_TYPES.items() if keyword in schema][:1]
    null_type = ["null"] if schema.get("nullable") is True and names else []
    return list(dict.fromkeys([*(name for name in names if isinstance(name, str)), *null_type]))


def has_type(value: Any, types: list[str]) -> bool:
    """Return whether a JSON value has one of the JSON types."""
    names_by_type = {str: ("string",), bool: ("boolean",), int: ("integer", "number"), float: ("number",)}
    names_by_type |= {list: ("array",), dict: ("object",), type(None): ("null",)}
    return bool(set(names_by_type.get(type(value), ())) & set(types))
