"""Strings and numbers in the form that a constraint enforces."""

from collections.abc import Callable
from typing import Any

from toolbench.engine.constraints.regex import MAX_CODE_POINT, CharacterClass, iterate_classes, parse_pattern
from toolbench.engine.constraints.schema_support import LENGTH_KEYWORDS, NUMBER_KEYWORDS, SchemaSupport, SizeLimits
from toolbench.engine.types import JsonObject

OnDropped = Callable[[str], None]

UNCHECKED_KEYWORDS = ("contentEncoding", "contentMediaType", "contentSchema")


def normalise_string(flat: JsonObject, dialect: SchemaSupport, limits: SizeLimits, drop: OnDropped) -> JsonObject:
    """Return a string schema by pattern, format or length.

    Where a pattern or a format is enforced, the length is not, but it still limits what the pattern leaves open.
    """
    for keyword in UNCHECKED_KEYWORDS:
        if keyword in flat:
            drop(keyword)
    held = _select_string_constraint(flat, dialect, drop)
    lengths = _normalise_lengths(flat, dialect, limits, drop)
    if not held or ("pattern" in held and dialect.together):
        return {"type": "string", **held, **lengths}
    for keyword in sorted(LENGTH_KEYWORDS & set(flat)):
        drop(keyword)
    ended = "pattern" in held and dialect.patterns == "plain"
    return {"type": "string", **held, **({"maxLength": lengths["maxLength"]} if ended else {})}


def _select_string_constraint(flat: JsonObject, dialect: SchemaSupport, drop: OnDropped) -> JsonObject:
    held: JsonObject = {}
    if "pattern" in flat:
        if is_pattern_supported(flat["pattern"], dialect.patterns):
            held = {"pattern": flat["pattern"]}
        else:
            drop("pattern")
    if "format" in flat:
        if flat["format"] in dialect.formats and not held:
            held = {"format": flat["format"]}
        else:
            drop("format")
    return held


def is_pattern_supported(pattern: Any, kind: str) -> bool:
    """Return whether a constraint with this kind of patterns enforces the pattern."""
    branches = parse_pattern(pattern) if isinstance(pattern, str) and kind != "none" else None
    if branches is None:
        return False
    if kind == "unescaped":
        return not any(_has_negated_escape(chars) for branch in branches for chars in iterate_classes(branch.node))
    return kind != "anchored" or (len(branches) == 1 and branches[0].from_start and branches[0].to_end)


def _has_negated_escape(chars: CharacterClass) -> bool:
    """Return whether a negated class excludes a character that JSON escapes."""
    inside = [any(low <= ord(character) <= high for low, high in chars.ranges) for character in '"\\']
    return not all(inside) and chars.ranges[-1:] != () and chars.ranges[-1][1] == MAX_CODE_POINT


def _normalise_lengths(flat: JsonObject, dialect: SchemaSupport, limits: SizeLimits, drop: OnDropped) -> JsonObject:
    if not dialect.keeps >= LENGTH_KEYWORDS:
        for keyword in sorted(LENGTH_KEYWORDS & set(flat)):
            drop(keyword)
        return {}
    least = int(flat.get("minLength", 0))
    most = int(flat.get("maxLength", max(limits.max_string, least)))
    if dialect.longest is not None and least > dialect.longest:
        drop("minLength")
        least = 0
    most = min(most, dialect.longest) if dialect.longest is not None else most
    if least > most:
        drop("minLength")
        least = 0
    return {**({"minLength": least} if least else {}), "maxLength": most}


def normalise_number(kind: str, flat: JsonObject, dialect: SchemaSupport, drop: OnDropped) -> JsonObject:
    """Return a number schema with the bounds that are enforced."""
    whole = kind == "integer"
    result: JsonObject = {"type": kind}
    for keyword in sorted((NUMBER_KEYWORDS | {"multipleOf"}) & set(flat)):
        value = flat[keyword]
        bound = isinstance(value, int | float) and not isinstance(value, bool)
        held = bound and keyword in dialect.keeps and (whole or dialect.fractions)
        if not held:
            drop(keyword)
        else:
            result[keyword] = value
    return _round_bounds(result) if whole and not dialect.fractions else result


def _round_bounds(schema: JsonObject) -> JsonObject:
    """Return an integer schema with `minimum` and `maximum` only, since grammars count in these."""
    result = {"type": "integer"}
    lows = [-(-value // 1) for value in _is_given(schema, "minimum")]
    lows += [value // 1 + 1 for value in _is_given(schema, "exclusiveMinimum")]
    highs = [value // 1 for value in _is_given(schema, "maximum")]
    highs += [-(-value // 1) - 1 for value in _is_given(schema, "exclusiveMaximum")]
    if lows and highs and max(lows) > min(highs):
        highs = []
    bounds = {**({"minimum": int(max(lows))} if lows else {}), **({"maximum": int(min(highs))} if highs else {})}
    return {**result, **bounds, **({"multipleOf": schema["multipleOf"]} if "multipleOf" in schema else {})}


def _is_given(schema: JsonObject, keyword: str) -> list[float]:
    return [schema[keyword]] if keyword in schema else []
