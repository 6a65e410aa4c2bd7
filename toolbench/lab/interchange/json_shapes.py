"""JSON Schemas of those JSON columns and step details of imported rows that pages and replays read."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import jsonschema_rs

from toolbench.engine.capabilities.record import DOCS
from toolbench.engine.events import ExchangeError
from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep
from toolbench.engine.types import Envelope, Finding, JsonObject, ParseError, SchemaError, TransformChange
from toolbench.lab.traces.step_facts import to_column_json

MAX_IMPORTED_DEPTH = 2 * MAX_DEPTH  # imported JSON contains values that have up to MAX_DEPTH levels themselves
TOO_DEEP = f"it is nested deeper than {MAX_IMPORTED_DEPTH} levels"
_TEXT, _INTEGER, _BOOLEAN, _OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "object"}
_OBJECT_OR_NULL, _TEXT_OR_NULL = {"type": ["object", "null"]}, {"type": ["string", "null"]}


def _build_object_schema(**properties: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _build_list_schema(item_schema: JsonObject) -> JsonObject:
    return {"type": "array", "items": item_schema}


# A policy layer as [name, patch].
_LAYER_SCHEMA = {"type": "array", "prefixItems": [_TEXT, _OBJECT], "minItems": 2, "maxItems": 2}
_SUPPORT_SCHEMA = {
    "properties": {"field": {"enum": sorted(DOCS)}, "source": _TEXT, "who": _TEXT, "at": _TEXT, "error": _TEXT},
    "required": ["field", "value", "source", "who", "at", "error"],
}
_RATES_SCHEMA = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
_UNREAD_FIELDS: JsonObject = {"drift": {}, "infrastructure": {}}  # of true rates; no page reads them


def _build_rates_schema(**properties: JsonObject) -> JsonObject:
    """Return the schema of true rates by scenario or group; `properties` are the schemas of further keys."""
    return {"type": "object", "properties": _UNREAD_FIELDS | properties, "additionalProperties": _RATES_SCHEMA}


_SCHEMA_BY_COLUMN: Mapping[str, JsonObject] = {
    "verdict": {
        "properties": {
            "checks": _build_list_schema(_build_object_schema(name=_TEXT, ok=_BOOLEAN, detail=_TEXT)),
            "judging": _INTEGER,
        }
    },
    "causes": _build_list_schema(
        {
            "type": "object",
            "properties": {
                "code": _TEXT,
                "path": _TEXT,
                "count": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                "mended": _BOOLEAN,
            },
        }
    ),
    "wrong_paths": _build_list_schema(_TEXT),
    "layers": _build_list_schema(_LAYER_SCHEMA),
    "routing": {"properties": {"passed": {"type": "array"}}},
    "support": {"anyOf": [{"maxProperties": 0}, _SUPPORT_SCHEMA]},
    "true_rates": _build_rates_schema(streamed=_build_rates_schema()),
    "left_out": _build_list_schema({"type": "object", "properties": {"name": _TEXT}}),
    "request": {
        "properties": {
            "profiles": {"type": ["array", "null"], "items": _TEXT},
            "overrides": {
                "type": ["object", "null"],
                "properties": {"response_transforms": {"type": ["array", "string", "null"]}},
            },
        }
    },
}
_HEADERS_SCHEMA = {"type": "object", "additionalProperties": _TEXT}
# A chunk as [offset in ms, number of bytes].
_CHUNK_SCHEMA = {"type": "array", "items": [{"type": "number"}, _INTEGER], "minItems": 2, "maxItems": 2}
_CALL_SCHEMA = {"type": "object", "required": ["id", "name", "arguments"]}
_SCHEMA_BY_TYPE: Mapping[Any, JsonObject] = {
    str: _TEXT,
    int: _INTEGER,
    int | None: {"type": ["integer", "null"]},
    bool: _BOOLEAN,
    JsonObject: _OBJECT,
    tuple[str, ...]: _build_list_schema(_TEXT),
    tuple[JsonObject, ...]: _build_list_schema(_OBJECT),
}


def _build_class_schema(dataclass_type: Any) -> JsonObject:
    """Return the schema of an object with the fields of a dataclass; fields with a default may be missing.

    Unknown keys, such as those of a later version, are accepted, because readers ignore them.
    """
    type_by_name = get_type_hints(dataclass_type)
    required = [
        field.name for field in fields(dataclass_type) if field.default is MISSING and field.default_factory is MISSING
    ]
    properties = {field.name: _SCHEMA_BY_TYPE[type_by_name[field.name]] for field in fields(dataclass_type)}
    return {"type": "object", "properties": properties, "required": required}


_CHANGES_SCHEMA = _build_list_schema(_build_class_schema(TransformChange))
_EXCHANGE_ERROR_SCHEMA = _build_class_schema(ExchangeError) | {"type": ["object", "null"]}
_ENVELOPE_SCHEMA = _build_class_schema(Envelope)
del _ENVELOPE_SCHEMA["required"]  # the readers fill in missing fields
_DETAILS_SCHEMA = {
    "type": "object",
    "properties": {
        "left_out": _build_list_schema(_TEXT),
        "request_headers": _HEADERS_SCHEMA,
        "request_changes": _CHANGES_SCHEMA,
        "response_headers": _HEADERS_SCHEMA,
        "response_changes": _CHANGES_SCHEMA,
        "text": _TEXT_OR_NULL,
        "message": _OBJECT_OR_NULL,
        "calls_found": _build_list_schema(_CALL_SCHEMA),
        "calls": _build_list_schema(_CALL_SCHEMA),
        "ignored_calls": _INTEGER,
        "findings": _build_list_schema(_build_class_schema(Finding)),
        "mode": _TEXT,
        "parse_errors": _build_list_schema(_build_class_schema(ParseError)),
        "notice": _TEXT,
        "usage": _OBJECT_OR_NULL,
        "error": _EXCHANGE_ERROR_SCHEMA,
        "chunks": _build_list_schema(_CHUNK_SCHEMA),
        "call": _OBJECT,
        "parse_status": _TEXT,
        "envelope": _ENVELOPE_SCHEMA,
        "schema_errors": _build_list_schema(_build_class_schema(SchemaError)),
        "changes": _CHANGES_SCHEMA,
    },
}
_DETAILS_VALIDATOR = jsonschema_rs.Draft4Validator(_DETAILS_SCHEMA)  # later drafts accept 2.0 as an integer
_VALIDATOR_BY_COLUMN = {name: jsonschema_rs.validator_for(schema) for name, schema in _SCHEMA_BY_COLUMN.items()}


def is_valid_column(column: str, value: Any) -> bool:
    """Return whether a value fits its JSON column.

    A column without a schema accepts any value.
    """
    return column not in _VALIDATOR_BY_COLUMN or _VALIDATOR_BY_COLUMN[column].is_valid(value)


def are_valid_details(details: bytes) -> bool:
    """Return whether bytes are valid step details in JSON. Empty bytes stand for {}.

    Only keys that pages and replays read are checked; other keys may have any value.
    """
    try:
        value = parse_imported_json(details or b"{}")
    except ValueError:
        return False
    return _DETAILS_VALIDATOR.is_valid(to_column_json(value))


def parse_imported_json(content: bytes) -> Any:
    """Return the value of JSON that may contain NaN and infinities.

    Raises:
        ValueError: the content is not JSON, or is nested deeper than MAX_IMPORTED_DEPTH levels, which pages could not
            show.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if is_too_deep(value, MAX_IMPORTED_DEPTH):
        raise ValueError(TOO_DEEP)
    return value
