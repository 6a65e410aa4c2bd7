"""Schemas of the JSON columns and the step details of imported rows that pages read."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from toolbench.engine.capabilities.record import DOCS
from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep
from toolbench.engine.types import JsonObject
from toolbench.lab.traces.step_facts import to_column_json

MAX_DETAILS_DEPTH = 2 * MAX_DEPTH  # step details contain values of up to MAX_DEPTH levels
_TEXT, _INTEGER, _BOOLEAN, _OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "object"}
_OBJECT_OR_NULL, _TEXT_OR_NULL = {"type": ["object", "null"]}, {"type": ["string", "null"]}


def _build_object_schema(**properties: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _build_list_schema(item: JsonObject) -> JsonObject:
    return {"type": "array", "items": item}


_LAYER_SCHEMA = {"type": "array", "prefixItems": [_TEXT, _OBJECT], "minItems": 2, "maxItems": 2}
_SUPPORT_SCHEMA = {
    "properties": {"field": {"enum": sorted(DOCS)}, "source": _TEXT, "who": _TEXT, "at": _TEXT, "error": _TEXT},
    "required": ["field", "value", "source", "who", "at", "error"],
}
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
}
_HEADERS_SCHEMA = {"type": "object", "additionalProperties": _TEXT}
_CHUNK_SCHEMA = {"type": "array", "items": [{"type": "number"}, _INTEGER], "minItems": 2, "maxItems": 2}
_CALL_SCHEMA = {"type": "object", "required": ["id", "name", "arguments"]}
_CHANGES_SCHEMA = _build_list_schema(
    _build_object_schema(kind=_TEXT, name=_TEXT, path=_TEXT, before=_TEXT, after=_TEXT)
)
_PARSE_ERROR_SCHEMA = _build_object_schema(
    mode=_TEXT,
    error=_TEXT,
    snippet=_TEXT,
    call={"type": ["integer", "null"]},
    repairs=_build_list_schema(_TEXT),
    truncated=_BOOLEAN,
)
_EXCHANGE_ERROR_SCHEMA = {
    "type": ["object", "null"],
    "properties": {
        "code": _TEXT,
        "message": _TEXT,
        "status": {"type": ["integer", "null"]},
        "infrastructure": _BOOLEAN,
        "retryable": _BOOLEAN,
        "tool_support": _BOOLEAN,
        "hint": _TEXT,
        "generation": _TEXT,
        "named": _build_list_schema(_TEXT),
    },
    "required": ["code", "message"],
}
_ENVELOPE_SCHEMA = {
    "type": "object",
    "properties": {
        "ok": _BOOLEAN,
        "tool_name": _TEXT,
        "data": _OBJECT,
        "warnings": _build_list_schema(_TEXT),
        "errors": _build_list_schema(_OBJECT),
    },
    "additionalProperties": False,
}
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
        "findings": _build_list_schema(_build_object_schema(code=_TEXT, message=_TEXT, path=_TEXT)),
        "mode": _TEXT,
        "parse_errors": _build_list_schema(_PARSE_ERROR_SCHEMA),
        "notice": _TEXT,
        "usage": _OBJECT_OR_NULL,
        "error": _EXCHANGE_ERROR_SCHEMA,
        "chunks": _build_list_schema(_CHUNK_SCHEMA),
        "call": _OBJECT,
        "parse_status": _TEXT,
        "envelope": _ENVELOPE_SCHEMA,
        "schema_errors": _build_list_schema(_build_object_schema(path=_TEXT, kind=_TEXT, message=_TEXT)),
        "changes": _CHANGES_SCHEMA,
    },
}
_DETAILS_VALIDATOR = jsonschema_rs.Draft4Validator(_DETAILS_SCHEMA)  # in later drafts, 2.0 is an integer
_VALIDATOR_BY_COLUMN = {name: jsonschema_rs.validator_for(schema) for name, schema in _SCHEMA_BY_COLUMN.items()}


def is_valid_column(column: str, value: Any) -> bool:
    """Return whether a value fits its JSON column.

    A column without a schema accepts any value, since no page reads inside it.
    """
    return column not in _VALIDATOR_BY_COLUMN or _VALIDATOR_BY_COLUMN[column].is_valid(value)


def are_valid_details(details: bytes) -> bool:
    """Return whether bytes are the JSON of step details, in whose known keys pages and replays read."""
    try:
        value = json.loads(details or b"{}")
    except (ValueError, RecursionError):
        return False
    return not is_too_deep(value, MAX_DETAILS_DEPTH) and _DETAILS_VALIDATOR.is_valid(to_column_json(value))
