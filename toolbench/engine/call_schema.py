"""The schema of what may be answered: a call of one of the tools, or a final text. It is bounded, so that a model that
rambles inside a string still ends its JSON, and it keeps to what the constraint engines really hold: the tool's own
schema judges the arguments afterwards in any case."""

from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs

from toolbench.engine.messages import JsonObject

MAX_STRING = 1900  # characters; llama.cpp reads bounds of 2000 and more as none, or refuses them
MAX_ITEMS = 256
MAX_DEPTH = 16  # below this anything bounded goes

KEPT = ("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems")
FORMATS = ("date", "time", "date-time", "uuid")

SCALAR: JsonObject = {
    "anyOf": [{"type": "string", "maxLength": MAX_STRING}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
}
ANYTHING: JsonObject = {
    "anyOf": [
        *SCALAR["anyOf"],
        {"type": "array", "items": SCALAR, "maxItems": MAX_ITEMS},
        {"type": "object", "additionalProperties": SCALAR},
    ]
}


def call_schema(tools_json: Sequence[JsonObject], *, final: bool) -> JsonObject:
    """`{"name", "arguments"}` of each tool, and `{"final"}` where allowed, as alternatives; a single one stands
    alone."""
    answers = [_call(tool["function"]) for tool in tools_json]
    if final:
        answers.append(_closed({"final": {"type": "string", "maxLength": MAX_STRING}}))
    return answers[0] if len(answers) == 1 else {"anyOf": answers}


def _call(function: JsonObject) -> JsonObject:
    name = {"type": "string", "enum": [function["name"]]}
    return _closed({"name": name, "arguments": arguments_schema(function.get("parameters") or {})})


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def arguments_schema(parameters: Mapping[str, Any]) -> JsonObject:
    """A tool's schema, bounded: references written out, strings and lists given an end, objects closed, and what no
    engine holds left out (`not`, `uniqueItems`, `if` …). A place where anything goes takes a scalar, or a list or an
    object of scalars."""
    schema = dict(parameters)
    if "$ref" in str(schema):
        try:
            schema = jsonschema_rs.dereference(schema, offline=True)
        except (jsonschema_rs.ReferencingError, ValueError):
            schema = dict(parameters)
    return _bounded({"properties": {}, **schema, "type": "object"}, 0)


def _bounded(schema: Any, depth: int) -> JsonObject:
    if not isinstance(schema, Mapping) or "$ref" in schema or depth > MAX_DEPTH:
        return ANYTHING
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(alternatives, list):
        return {"anyOf": [_bounded(_inherit(schema, option), depth + 1) for option in alternatives]}
    result = {key: schema[key] for key in KEPT if key in schema}
    if "enum" in result or "const" in result:
        return {key: value for key, value in result.items() if key in ("type", "enum", "const")}
    types = _types(schema)
    if not types:
        return ANYTHING
    result["type"] = types[0] if len(types) == 1 else types
    if "string" in types:
        result |= _string(schema)
    if "array" in types:
        result["items"] = _bounded(schema.get("items"), depth + 1)
        result["maxItems"] = schema.get("maxItems", MAX_ITEMS)
    if "object" in types:
        result |= _object(schema, depth)
    return result


def _inherit(schema: Mapping[str, Any], option: Any) -> Any:
    """An alternative with the type that stands beside the list of alternatives."""
    return {"type": schema["type"], **option} if isinstance(option, Mapping) and "type" in schema else option


def _types(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("type")
    if isinstance(given, str):
        return [given]
    if isinstance(given, list):
        return [name for name in given if isinstance(name, str)]
    implied = {"properties": "object", "items": "array", "pattern": "string", "maxLength": "string"}
    return [name for keyword, name in implied.items() if keyword in schema][:1]


def _string(schema: Mapping[str, Any]) -> JsonObject:
    pattern, form = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$") and "(?" not in pattern:
        return {"pattern": pattern}
    if form in FORMATS:
        return {"format": form}
    bounds = {"minLength": schema["minLength"]} if "minLength" in schema else {}
    return {**bounds, "maxLength": schema.get("maxLength", MAX_STRING)}


def _object(schema: Mapping[str, Any], depth: int) -> JsonObject:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {"additionalProperties": _others(schema.get("additionalProperties", True), depth)}
    required = schema.get("required")
    named = [name for name in required if name in properties] if isinstance(required, list) else []
    return {
        "properties": {name: _bounded(value, depth + 1) for name, value in properties.items()},
        **({"required": named} if named else {}),
        "additionalProperties": _others(schema.get("additionalProperties", False), depth),
    }


def _others(schema: Any, depth: int) -> Any:
    """What other keys an object may have; an object that names its keys and says nothing of others is closed."""
    if schema is False:
        return False
    return SCALAR if schema is True else _bounded(schema, depth + 1)
