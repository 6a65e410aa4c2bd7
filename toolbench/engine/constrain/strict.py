"""Strict tools, OpenAI's and Anthropic's: those whose schema is taken, and what OpenAI's nulls mean on the way back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolbench.engine.constrain.dialects import STRICT, Dialect, Limits
from toolbench.engine.constrain.dropping import Dropped
from toolbench.engine.constrain.normalising import Normaliser
from toolbench.engine.messages import JsonObject


def strict_tools(
    tools_json: Sequence[JsonObject], limits: Limits, dialect: Dialect = STRICT
) -> tuple[list[JsonObject], tuple[Dropped, ...]]:
    """The tools with `strict` and the schema that its dialect takes. A tool whose arguments are a union at their root
    cannot be strict and goes as it is, which is reported. Raises PlanError for a schema that cannot be used."""
    strict, dropped = [], []
    for place, tool in enumerate(tools_json):
        function = tool["function"]
        normaliser = Normaliser(dialect, limits)
        schema = normaliser.arguments(function, place)
        if schema.get("type") != "object":
            value = json.dumps(sorted(schema))
            dropped.append(Dropped(f"$[{place}].parameters", "strict", dialect.name, value, "sent without strict"))
            strict.append(tool)
            continue
        dropped += normaliser.dropped
        defined = {"$defs": normaliser.definitions} if normaliser.definitions else {}
        strict.append({**tool, "function": {**function, "strict": True, "parameters": {**schema, **defined}}})
    return strict, tuple(dropped)


def without_added_nulls(value: Any, schema: Any) -> Any:
    """Arguments without the nulls by which strict mode leaves out what is optional: a key goes where the tool's own
    schema neither requires it nor takes null for it."""
    if isinstance(value, list) and isinstance(schema, Mapping):
        return [without_added_nulls(item, schema.get("items")) for item in value]
    if not isinstance(value, dict) or not isinstance(schema, Mapping):
        return value
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: without_added_nulls(part, properties.get(name))
        for name, part in value.items()
        if part is not None or name in required or name not in properties or _takes_null(properties[name])
    }


def _takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or schema.get("nullable") is True or "$ref" in schema:
        return True
    if "const" in schema or "enum" in schema:
        return None in schema.get("enum", [schema.get("const")])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(_takes_null(option) for option in options)
    kind = schema.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)
