"""Merging of two schemas that a value must both satisfy."""

from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.types import JsonObject

OnDropped = Callable[[str, Any], None]

_SMALLER_WINS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_GREATER_WINS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_NESTED_SCHEMAS = ("items", "additionalProperties", "not")
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable")
) | frozenset(("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"))


def merge_schemas(first: Mapping[str, Any], second: Mapping[str, Any], drop: OnDropped) -> JsonObject:
    """Return a schema that requires what both schemas require.

    Of annotations that both have, those of `first` are kept. `drop` is called with each keyword of `second` that cannot
    be merged, and its value; the keyword of `first` is kept.
    """
    result = dict(first)
    for keyword, value in second.items():
        if keyword not in result or keyword in ANNOTATIONS:
            result.setdefault(keyword, value)
        elif result[keyword] != value:
            result[keyword] = _merge_keyword(keyword, result[keyword], value, drop)
    return result


def _merge_keyword(keyword: str, first: Any, second: Any, drop: OnDropped) -> Any:
    """Return the value of a keyword that satisfies both schemas, or that of `first` if they cannot be merged."""
    if keyword in _SMALLER_WINS:
        return min(first, second)
    if keyword in _GREATER_WINS:
        return max(first, second)
    if keyword == "required":
        return list(dict.fromkeys([*first, *second]))
    if keyword in ("properties", "patternProperties"):
        return {
            **first,
            **{name: _merge_nested(first[name], part) if name in first else part for name, part in second.items()},
        }
    if keyword in _NESTED_SCHEMAS:
        return _merge_nested(first, second)
    common = _intersect(keyword, first, second)
    if not common:
        drop(keyword, second)
    return common or first


def _merge_nested(first: Any, second: Any) -> Any:
    if first is False or second is False:
        return False
    return {"allOf": [part for part in (first, second) if part is not True]}


def _intersect(keyword: str, first: Any, second: Any) -> Any:
    """Return the values of two enums, or the types, that are common to both; None if there are none.

    The result is None for other keywords, too. `integer` and `number` have `integer` in common.
    """
    if keyword == "enum":
        return [value for value in first if value in second] or None
    if keyword != "type":
        return None
    first_names, second_names = ([types] if isinstance(types, str) else list(types) for types in (first, second))
    shared = [name for name in first_names if name in second_names]
    if (
        "integer" in (*first_names, *second_names)
        and "integer" not in shared
        and "number" in (*first_names, *second_names)
    ):
        shared.append("integer")
    return shared[0] if len(shared) == 1 else shared or None
