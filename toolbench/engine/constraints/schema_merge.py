"""Merging of two schemas that must both hold."""

from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.types import JsonObject

OnLost = Callable[[str, Any], None]

_SMALLER_WINS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_GREATER_WINS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_NESTED_SCHEMAS = ("items", "additionalProperties", "not")
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable")
) | frozenset(("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"))


def merge_schemas(one: Mapping[str, Any], other: Mapping[str, Any], lost: OnLost) -> JsonObject:
    """Return a schema that requires what both do.

    `lost` is called with each keyword of `other` that cannot be merged.
    """
    result = dict(one)
    for keyword, value in other.items():
        if keyword not in result or keyword in ANNOTATIONS:
            result.setdefault(keyword, value)
        elif result[keyword] != value:
            result[keyword] = _merge_keyword(keyword, result[keyword], value, lost)
    return result


def _merge_keyword(keyword: str, one: Any, other: Any, lost: OnLost) -> Any:
    if keyword in _SMALLER_WINS:
        return min(one, other)
    if keyword in _GREATER_WINS:
        return max(one, other)
    if keyword == "required":
        return list(dict.fromkeys([*one, *other]))
    if keyword in ("properties", "patternProperties"):
        return {
            **one,
            **{name: _merge_nested(one[name], part) if name in one else part for name, part in other.items()},
        }
    if keyword in _NESTED_SCHEMAS:
        return _merge_nested(one, other)
    common = _intersect(keyword, one, other)
    if not common:
        lost(keyword, other)
    return common or one


def _merge_nested(one: Any, other: Any) -> Any:
    if one is False or other is False:
        return False
    return {"allOf": [part for part in (one, other) if part is not True]}


def _intersect(keyword: str, one: Any, other: Any) -> Any:
    """Return the values or types that both lists have; None for none, and for keywords that cannot be intersected."""
    if keyword == "enum":
        return [value for value in one if value in other] or None
    if keyword != "type":
        return None
    ones, others = ([given] if isinstance(given, str) else list(given) for given in (one, other))
    shared = [name for name in ones if name in others]
    if "integer" in (*ones, *others) and "integer" not in shared and "number" in (*ones, *others):
        shared.append("integer")
    return shared[0] if len(shared) == 1 else shared or None
