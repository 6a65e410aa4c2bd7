"""Strict tools of OpenAI and Anthropic, and removal of the nulls that OpenAI's strict mode requires."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.normalise_schema import SchemaNormaliser
from toolbench.engine.constraints.schema_support import STRICT_SUPPORT, SchemaSupport, SizeLimits
from toolbench.engine.formats.coercion import find_subschema, iterate_subschemas, resolve_reference
from toolbench.engine.types import JsonObject


def build_strict_tools(
    tools_json: Sequence[JsonObject], limits: SizeLimits, support: SchemaSupport = STRICT_SUPPORT
) -> tuple[list[JsonObject], tuple[DroppedKeyword, ...]]:
    """Return the tools with `strict` and a schema that the constraint accepts.

    A tool whose normalised schema is not an object schema, but for example a union, cannot be strict. It is
    returned unchanged, and `strict` is reported as its dropped keyword.

    Returns:
        The tools in the same order, and the keywords that the constraint does not enforce.

    Raises:
        PlanError: a schema cannot be normalised.
    """
    strict_tools, dropped_keywords = [], []
    for index, tool in enumerate(tools_json):
        function = tool["function"]
        normaliser = SchemaNormaliser(support, limits, keeps_descriptions=True)
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


def remove_added_nulls(arguments: Any, schema: Any) -> Any:
    """Return arguments without the nulls that a model gives in strict mode for optional keys.

    A key with null is removed if the schema has the key, does not require it, and does not allow null for it.

    `schema` is that of the tool before `build_strict_tools`.
    """
    return _remove_nulls(arguments, schema, schema) if isinstance(schema, Mapping) else arguments


def _remove_nulls(value: Any, schema: object, root: Mapping[str, Any]) -> Any:
    """Return a value of the arguments without added nulls; the references of its schema are resolved in `root`."""
    if isinstance(value, list):
        items_schema = find_subschema(schema, "", root)
        return [_remove_nulls(item, items_schema, root) for item in value]
    if not isinstance(value, dict):
        return value
    object_schemas = list(iterate_subschemas(schema, root))
    required = {name for object_schema in object_schemas for name in object_schema.get("required") or ()}
    result = {}
    for name, item_value in value.items():
        property_schemas = [
            object_schema["properties"][name]
            for object_schema in object_schemas
            if name in (object_schema.get("properties") or ())
        ]
        is_kept = item_value is not None or not property_schemas or name in required
        if is_kept or any(_is_null_allowed(part, root) for part in property_schemas):
            result[name] = _remove_nulls(item_value, {"anyOf": property_schemas}, root)
    return result


def _is_null_allowed(schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a schema allows null; one that refers only to itself allows every value."""
    subschemas = list(iterate_subschemas(schema, root))[::-1]  # the inner ones first
    refusing_ids: set[int] = set()  # ids of the Python objects of schemas that do not allow null
    earlier_count = -1
    while len(refusing_ids) > earlier_count:  # until none is added, since schemas may refer to each other
        earlier_count = len(refusing_ids)
        for subschema in subschemas:
            if not _is_null_allowed_by_parts(subschema, root, refusing_ids):
                refusing_ids.add(id(subschema))
    return id(schema) not in refusing_ids


def _is_null_allowed_by_parts(schema: Mapping[str, Any], root: Mapping[str, Any], refusing_ids: set[int]) -> bool:
    """Return whether a schema allows null, given its branches and targets of references that do not."""
    if schema.get("nullable") is True:
        return True
    if "const" in schema or "enum" in schema:
        return None in schema.get("enum", [schema.get("const")])
    parts = [*(schema.get("allOf") or ()), *([resolve_reference(schema["$ref"], root)] if "$ref" in schema else ())]
    options = schema.get("anyOf") or schema.get("oneOf") or [True]
    json_type = schema.get("type", "null")
    return (
        "null" in (json_type if isinstance(json_type, list) else [json_type])
        and any(id(option) not in refusing_ids for option in options)
        and refusing_ids.isdisjoint(map(id, parts))
    )
