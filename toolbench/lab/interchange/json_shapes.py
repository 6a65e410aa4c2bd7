"""Schemas of the JSON columns of imported rows that pages read."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from toolbench.engine.capabilities.record import DOCS
from toolbench.engine.types import JsonObject

_TEXT, _INTEGER, _BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def _build_object_schema(**properties: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_LAYER_SCHEMA = {"type": "array", "prefixItems": [_TEXT, {"type": "object"}], "minItems": 2, "maxItems": 2}
_SUPPORT_SCHEMA = {
    "properties": {"field": {"enum": sorted(DOCS)}, "source": _TEXT, "who": _TEXT, "at": _TEXT, "error": _TEXT},
    "required": ["field", "value", "source", "who", "at", "error"],
}
_SCHEMA_BY_COLUMN: Mapping[str, JsonObject] = {
    "verdict": {
        "properties": {
            "checks": {"type": "array", "items": _build_object_schema(name=_TEXT, ok=_BOOLEAN, detail=_TEXT)},
            "judging": _INTEGER,
        }
    },
    "causes": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "code": _TEXT,
                "path": _TEXT,
                "count": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                "mended": _BOOLEAN,
            },
        },
    },
    "wrong_paths": {"type": "array", "items": _TEXT},
    "layers": {"type": "array", "items": _LAYER_SCHEMA},
    "routing": {"properties": {"passed": {"type": "array"}}},
    "support": {"anyOf": [{"maxProperties": 0}, _SUPPORT_SCHEMA]},
}
_VALIDATOR_BY_COLUMN = {name: jsonschema_rs.validator_for(schema) for name, schema in _SCHEMA_BY_COLUMN.items()}


def is_valid_column(column: str, value: Any) -> bool:
    """Return whether a value fits its JSON column.

    A column without a schema accepts any value, since no page reads inside it.
    """
    return column not in _VALIDATOR_BY_COLUMN or _VALIDATOR_BY_COLUMN[column].is_valid(value)
