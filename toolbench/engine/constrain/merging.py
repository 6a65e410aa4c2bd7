"""Two schemas that must both hold, as one."""

from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.messages import JsonObject

Lost = Callable[[str, Any], None]

_LEAST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_GREATEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_BOTH = ("items", "additionalProperties", "not")
ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable")
) | frozenset(("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"))


def merged(one: Mapping[str, Any], other: Mapping[str, Any], lost: Lost) -> JsonObject:
    """A schema that holds what both do. `lost` is told of every keyword of `other` for which there is no such."""
    result = dict(one)
    for keyword, value in other.items():
        if keyword not in result or keyword in ANNOTATIONS:
            result.setdefault(keyword, value)
        elif result[keyword] != value:
            result[keyword] = _joined(keyword, result[keyword], value, lost)
    return result


def _joined(keyword: str, one: Any, other: Any, lost: Lost) -> Any:
    if keyword in _LEAST:
        return min(one, other)
    if keyword in _GREATEST:
        return max(one, other)
    if keyword == "required":
        return list(dict.fromkeys([*one, *other]))
    if keyword in ("properties", "patternProperties"):
        return {**one, **{name: _both(one[name], part) if name in one else part for name, part in other.items()}}
    if keyword in _BOTH:
        return _both(one, other)
    common = _common(keyword, one, other)
    if not common:
        lost(keyword, other)
    return common or one


def _both(one: Any, other: Any) -> Any:
    if one is False or other is False:
        return False
    return {"allOf": [part for part in (one, other) if part is not True]}


def _common(keyword: str, one: Any, other: Any) -> Any:
    """What two lists of values or types have in common; None where that is nothing, or the keyword has no such."""
    if keyword == "enum":
        return [value for value in one if value in other] or None
    if keyword != "type":
        return None
    ones, others = ([given] if isinstance(given, str) else list(given) for given in (one, other))
    shared = [name for name in ones if name in others]
    if "integer" in (*ones, *others) and "integer" not in shared and "number" in (*ones, *others):
        shared.append("integer")
    return shared[0] if len(shared) == 1 else shared or None
