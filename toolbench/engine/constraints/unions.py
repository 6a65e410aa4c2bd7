"""Unions of normalised schemas."""

from toolbench.engine.types import JsonObject

NULL_SCHEMA: JsonObject = {"type": "null"}


def build_union(options: list[JsonObject]) -> JsonObject:
    """Return the schema of values that fit one of the options; {} without options."""
    if len(options) < 2:
        return options[0] if options else {}
    return {"anyOf": options}


def make_nullable(schema: JsonObject) -> JsonObject:
    """Return a schema that also allows null.

    Strict mode requires every key; a model gives null for a key that it wants to omit. The description of the schema
    becomes that of the union.
    """
    option = {keyword: value for keyword, value in schema.items() if keyword != "description"}
    options = option.get("anyOf", [option])
    description = {"description": schema["description"]} if "description" in schema else {}
    is_nullable = any(option.get("type") == "null" for option in options)
    return schema if is_nullable else {"anyOf": [*options, NULL_SCHEMA], **description}
