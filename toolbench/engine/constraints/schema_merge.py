"""Merging of two schemas into one that requires what both require."""

from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.types import JsonObject

OnValueDropped = Callable[[str, Any], None]  # takes a keyword and its value

_SMALLEST_VALUE_KEYWORDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_GREATEST_VALUE_KEYWORDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_NESTED_SCHEMAS = ("items", "additionalProperties", "not")
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable")
) | frozenset(("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"))


def merge_schemas(
    first_schema: Mapping[str, Any], second_schema: Mapping[str, Any], on_dropped: OnValueDropped
) -> JsonObject:
    """Return a schema that requires what both schemas require.

    Of annotations that both have, those of `first_schema` are kept. `on_dropped` is called with each keyword of
    `second_schema` that cannot be merged, and its value; the keyword of `first_schema` is kept.
    """
    result = dict(first_schema)
    for keyword, value in second_schema.items():
        if keyword not in result or keyword in ANNOTATIONS:
            result.setdefault(keyword, value)
        elif result[keyword] != value:
            result[keyword] = _merge_keyword(keyword, result[keyword], value, on_dropped)
    return result


def _merge_keyword(keyword: str, first_value: Any, second_value: Any, on_dropped: OnValueDropped) -> Any:
    """Return the merged value of a keyword, or `first_value` if the values cannot be merged."""
    if keyword in _SMALLEST_VALUE_KEYWORDS:
        return min(first_value, second_value)
    if keyword in _GREATEST_VALUE_KEYWORDS:
        return max(first_value, second_value)
    if keyword == "required":
        return list(dict.fromkeys([*first_value, *second_value]))
    if keyword in ("properties", "patternProperties"):
        return {
            **first_value,
            **{
                name: _merge_nested(first_value[name], part) if name in first_value else part
                for name, part in second_value.items()
            },
        }
    if keyword in _NESTED_SCHEMAS:
        return _merge_nested(first_value, second_value)
    common_value = _intersect(keyword, first_value, second_value)
    if not common_value:
        on_dropped(keyword, second_value)
    return common_value or first_value


def _merge_nested(first_schema: Any, second_schema: Any) -> Any:
    if first_schema is False or second_schema is False:
        return False
    return {"allOf": [part for part in (first_schema, second_schema) if part is not True]}


def _intersect(keyword: str, first_value: Any, second_value: Any) -> Any:
    """Return what two values of `enum` or `type` have in common; None for nothing and for other keywords.

    `integer` and `number` have `integer` in common.
    """
    if keyword == "enum":
        return [value for value in first_value if value in second_value] or None
    if keyword != "type":
        return None
    first_names, second_names = (
        [types] if isinstance(types, str) else list(types) for types in (first_value, second_value)
    )
    shared_types = [name for name in first_names if name in second_names]
    if "integer" not in shared_types and any(
        "integer" in names and "number" in other_names
        for names, other_names in ((first_names, second_names), (second_names, first_names))
    ):
        shared_types.append("integer")
    return shared_types[0] if len(shared_types) == 1 else shared_types or None
