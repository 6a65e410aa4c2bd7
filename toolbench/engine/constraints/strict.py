"""Strict tools of OpenAI and Anthropic: their schemas, and the nulls that OpenAI's strict mode adds to arguments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.normalise_schema import SchemaNormaliser
from toolbench.engine.constraints.schema_support import STRICT_SUPPORT, SchemaSupport, SizeLimits
from toolbench.engine.types import JsonObject


def build_strict_tools(
    tools_json: Sequence[JsonObject], limits: SizeLimits, dialect: SchemaSupport = STRICT_SUPPORT
) -> tuple[list[JsonObject], tuple[DroppedKeyword, ...]]:
    """Return the tools with `strict` and a schema that the constraint accepts.

    A tool whose arguments are a union at their root cannot be strict; it is sent unchanged and reported.

    Raises:
        PlanError: a schema cannot be used.
    """
    strict, dropped = [], []
    for place, tool in enumerate(tools_json):
        function = tool["function"]
        normaliser = SchemaNormaliser(dialect, limits)
        schema = normaliser.arguments(function, place)
        if schema.get("type") != "object":
            value = json.dumps(sorted(schema))
            dropped.append(
                DroppedKeyword(f"$[{place}].parameters", "strict", dialect.name, value, "sent without strict")
            )
            strict.append(tool)
            continue
        dropped += normaliser.dropped
        defined = {"$defs": normaliser.definitions} if normaliser.definitions else {}
        strict.append({**tool, "function": {**function, "strict": True, "parameters": {**schema, **defined}}})
    return strict, tuple(dropped)


def remove_added_nulls(value: Any, schema: Any) -> Any:
    """Return arguments without the nulls by which strict mode leaves optional keys out.

    A key is removed if the tool's schema neither requires it nor allows null for it.
    """
    if isinstance(value, list) and isinstance(schema, Mapping):
        return [remove_added_nulls(item, schema.get("items")) for item in value]
    if not isinstance(value, dict) or not isinstance(schema, Mapping):
        return value
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: remove_added_nulls(part, properties.get(name))
        for name, part in value.items()
        if part is not None or name in required or name not in properties or _is_null_allowed(properties[name])
    }


def _is_null_allowed(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or schema.get("nullable") is True or "$ref" in schema:
        return True
    if "const" in schema or "enum" in schema:
        return None in schema.get("enum", [schema.get("const")])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(_is_null_allowed(option) for option in options)
    kind = schema.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)
