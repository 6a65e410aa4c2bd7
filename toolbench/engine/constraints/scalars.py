"""Strings and numbers in the form that a constraint enforces."""

from collections.abc import Callable
from typing import Any

from toolbench.engine.constraints.regex import MAX_CODE_POINT, CharacterClass, iterate_classes, parse_pattern
from toolbench.engine.constraints.schema_support import LENGTH_KEYWORDS, NUMBER_KEYWORDS, SchemaSupport, SizeLimits
from toolbench.engine.types import JsonObject

OnDropped = Callable[[str], None]

UNCHECKED_KEYWORDS = ("contentEncoding", "contentMediaType", "contentSchema")


def normalise_string(flat: JsonObject, support: SchemaSupport, limits: SizeLimits, drop: OnDropped) -> JsonObject:
    """Return a string schema with a pattern, a format or bounds of the length.

    With a pattern or a format, the length is enforced only if the constraint supports both (`together`). A maximum
    length is kept in any case for Toolbench's GBNF grammars, where it limits the open ends of the pattern. `drop` is
    called with each keyword that is not enforced.
    """
    for keyword in UNCHECKED_KEYWORDS:
        if keyword in flat:
            drop(keyword)
    kept_keywords = _select_string_constraint(flat, support, drop)
    lengths = _normalise_lengths(flat, support, limits, drop)
    if not kept_keywords or ("pattern" in kept_keywords and support.together):
        return {"type": "string", **kept_keywords, **lengths}
    for keyword in sorted(LENGTH_KEYWORDS & set(flat)):
        drop(keyword)
    has_max_length = "pattern" in kept_keywords and support.patterns == "plain"
    return {"type": "string", **kept_keywords, **({"maxLength": lengths["maxLength"]} if has_max_length else {})}


def _select_string_constraint(flat: JsonObject, support: SchemaSupport, drop: OnDropped) -> JsonObject:
    kept_keywords: JsonObject = {}
    if "pattern" in flat:
        if is_pattern_supported(flat["pattern"], support.patterns):
            kept_keywords = {"pattern": flat["pattern"]}
        else:
            drop("pattern")
    if "format" in flat:
        if flat["format"] in support.formats and not kept_keywords:
            kept_keywords = {"format": flat["format"]}
        else:
            drop("format")
    return kept_keywords


def is_pattern_supported(pattern: Any, kind: str) -> bool:
    """Return whether a constraint enforces a pattern; `kind` is a value of `SchemaSupport.patterns`."""
    branches = parse_pattern(pattern) if isinstance(pattern, str) and kind != "none" else None
    if branches is None:
        return False
    if kind == "unescaped":
        return not any(_has_negated_escape(chars) for branch in branches for chars in iterate_classes(branch.node))
    return kind != "anchored" or (len(branches) == 1 and branches[0].from_start and branches[0].to_end)


def _has_negated_escape(character_class: CharacterClass) -> bool:
    """Return whether a class contains the last code point, as negated ones do, but not both `"` and the backslash."""
    are_contained = [any(low <= ord(character) <= high for low, high in character_class.ranges) for character in '"\\']
    return (
        not all(are_contained) and character_class.ranges[-1:] != () and character_class.ranges[-1][1] == MAX_CODE_POINT
    )


def _normalise_lengths(flat: JsonObject, support: SchemaSupport, limits: SizeLimits, drop: OnDropped) -> JsonObject:
    """Return the bounds of a string's length that are enforced; `drop` is called with the others."""
    if not support.keeps >= LENGTH_KEYWORDS:
        for keyword in sorted(LENGTH_KEYWORDS & set(flat)):
            drop(keyword)
        return {}
    least = int(flat.get("minLength", 0))
    most = int(flat.get("maxLength", max(limits.max_string, least)))
    if support.longest is not None and least > support.longest:
        drop("minLength")
        least = 0
    most = min(most, support.longest) if support.longest is not None else most
    if least > most:
        drop("minLength")
        least = 0
    return {**({"minLength": least} if least else {}), "maxLength": most}


def normalise_number(kind: str, flat: JsonObject, support: SchemaSupport, drop: OnDropped) -> JsonObject:
    """Return a number schema with the bounds that are enforced.

    Args:
        kind: `integer` or `number`.
        flat: the schema without references.
        support: the keywords that the constraint enforces.
        drop: called with each keyword that is not enforced.
    """
    is_integer = kind == "integer"
    result: JsonObject = {"type": kind}
    for keyword in sorted((NUMBER_KEYWORDS | {"multipleOf"}) & set(flat)):
        value = flat[keyword]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_kept = is_number and keyword in support.keeps and (is_integer or support.fractions)
        if not is_kept:
            drop(keyword)
        else:
            result[keyword] = value
    return _round_bounds(result) if is_integer and not support.fractions else result


def _round_bounds(schema: JsonObject) -> JsonObject:
    """Return an integer schema whose bounds are whole numbers in `minimum` and `maximum`, as grammars require.

    If the bounds exclude every number, `maximum` is left out.
    """
    result = {"type": "integer"}
    lows = [-(-value // 1) for value in _list_given_bound(schema, "minimum")]
    lows += [value // 1 + 1 for value in _list_given_bound(schema, "exclusiveMinimum")]
    highs = [value // 1 for value in _list_given_bound(schema, "maximum")]
    highs += [-(-value // 1) - 1 for value in _list_given_bound(schema, "exclusiveMaximum")]
    if lows and highs and max(lows) > min(highs):
        highs = []
    bounds = {**({"minimum": int(max(lows))} if lows else {}), **({"maximum": int(min(highs))} if highs else {})}
    return {**result, **bounds, **({"multipleOf": schema["multipleOf"]} if "multipleOf" in schema else {})}


def _list_given_bound(schema: JsonObject, keyword: str) -> list[float]:
    return [schema[keyword]] if keyword in schema else []
