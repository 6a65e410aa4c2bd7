"""What JSON columns of a stranger's rows have to look like, for every page that reads them to be able to."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from toolbench.engine.capabilities.record import DOCS
from toolbench.engine.messages import JsonObject

_TEXT, _WHOLE, _YES_NO = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def _exactly(**columns: JsonObject) -> JsonObject:
    """An object of just these."""
    return {"type": "object", "properties": columns, "required": list(columns), "additionalProperties": False}


_LAYER = {"type": "array", "prefixItems": [_TEXT, {"type": "object"}], "minItems": 2, "maxItems": 2}
_SUPPORT = {
    "properties": {"field": {"enum": sorted(DOCS)}, "source": _TEXT, "who": _TEXT, "at": _TEXT, "error": _TEXT},
    "required": ["field", "value", "source", "who", "at", "error"],
}
_SHAPES: Mapping[str, JsonObject] = {
    "verdict": {
        "properties": {
            "checks": {"type": "array", "items": _exactly(name=_TEXT, ok=_YES_NO, detail=_TEXT)},
            "judging": _WHOLE,
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
                "mended": _YES_NO,
            },
        },
    },
    "layers": {"type": "array", "items": _LAYER},
    "routing": {"properties": {"passed": {"type": "array"}}},
    "support": {"anyOf": [{"maxProperties": 0}, _SUPPORT]},
}
_VALIDATORS = {name: jsonschema_rs.validator_for(shape) for name, shape in _SHAPES.items()}


def has_shape(column: str, value: Any) -> bool:
    """True too for a column that no page opens."""
    return column not in _VALIDATORS or _VALIDATORS[column].is_valid(value)
