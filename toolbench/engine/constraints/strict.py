"""Strict tools of OpenAI and Anthropic, and removal of the nulls that OpenAI's strict mode requires."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.normalise_schema import SchemaNormaliser
from toolbench.engine.constraints.schema_support import STRICT_SUPPORT, SchemaSupport, SizeLimits
from toolbench.engine.types import JsonObject


def build_strict_tools(
    tools_json: Sequence[JsonObject], limits: SizeLimits, support: SchemaSupport = STRICT_SUPPORT
) -> tuple[list[JsonObject], tuple[DroppedKeyword, ...]]:
    """Return the tools with `strict` and a schema that the constraint accepts.

    A tool whose schema is not a plain object at its root, such as a union, cannot be strict. It is returned unchanged,
    and `strict` is reported as its dropped keyword.

    Returns:
        The tools in the same order, and the keywords that the constraint does not enforce.

    Raises:
        PlanError: a schema cannot be used.
    """
    strict_tools, dropped_keywords = [], []
    for index, tool in enumerate(tools_json):
        function = tool["function"]
        normaliser = SchemaNormaliser(support, limits)
        schema = normaliser.normalise_arguments(function, index)
        if schema.get("type") != "object":
            value = json.dumps(sorted(schema))
            dropped_keywords.append(
                DroppedKeyword(f"$[{index}].parameters", "strict", support.name, value, "sent without strict")
            )
            strict_tools.append(tool)
            continue
        dropped_keywords += normaliser.dropped_keywords
        definition_keyword = {"$defs": normaliser.definitions} if normaliser.definitions else {}
        strict_tools.append(
            {**tool, "function": {**function, "strict": True, "parameters": {**schema, **definition_keyword}}}
        )
    return strict_tools, tuple(dropped_keywords)


def remove_added_nulls(value: Any, schema: Any) -> Any:
    """Return arguments without the nulls that a model gives in strict mode for optional keys.

    A key with null is removed if the schema has the key, does not require it, and does not allow null for it.

    Args:
        value: the arguments, or a value in them.
        schema: the tool's own schema of the value.
    """
    if isinstance(value, list) and isinstance(schema, Mapping):
        return [remove_added_nulls(item, schema.get("items")) for item in value]
    if not isinstance(value, dict) or not isinstance(schema, Mapping):
        return value
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: remove_added_nulls(item_value, properties.get(name))
        for name, item_value in value.items()
        if item_value is not None or name in required or name not in properties or _is_null_allowed(properties[name])
    }


def _is_null_allowed(schema: Any) -> bool:
    """Return whether a schema allows null; True for a reference, which is not followed."""
    if not isinstance(schema, Mapping) or schema.get("nullable") is True or "$ref" in schema:
        return True
    if "const" in schema or "enum" in schema:
        return None in schema.get("enum", [schema.get("const")])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(_is_null_allowed(option) for option in options)
    json_type = schema.get("type")
    return json_type is None or json_type == "null" or (isinstance(json_type, list) and "null" in json_type)
