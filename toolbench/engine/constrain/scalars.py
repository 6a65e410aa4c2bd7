"""Strings and numbers as a dialect holds them."""

from collections.abc import Callable
from typing import Any

from toolbench.engine.constrain.dialects import LENGTHS, NUMBERS, Dialect, Limits
from toolbench.engine.constrain.patterns import LAST, Chars, classes_of, read_pattern
from toolbench.engine.messages import JsonObject

Drop = Callable[[str], None]

UNCHECKED = ("contentEncoding", "contentMediaType", "contentSchema")


def string(flat: JsonObject, dialect: Dialect, limits: Limits, drop: Drop) -> JsonObject:
    """A string by pattern, format or length; where a pattern or a format is held the length beside it is not, but it
    still ends what the pattern leaves open."""
    for keyword in UNCHECKED:
        if keyword in flat:
            drop(keyword)
    held = _shape(flat, dialect, drop)
    lengths = _lengths(flat, dialect, limits, drop)
    if not held or ("pattern" in held and dialect.together):
        return {"type": "string", **held, **lengths}
    for keyword in sorted(LENGTHS & set(flat)):
        drop(keyword)
    ended = "pattern" in held and dialect.patterns == "plain"
    return {"type": "string", **held, **({"maxLength": lengths["maxLength"]} if ended else {})}


def _shape(flat: JsonObject, dialect: Dialect, drop: Drop) -> JsonObject:
    held: JsonObject = {}
    if "pattern" in flat:
        if holds_pattern(flat["pattern"], dialect.patterns):
            held = {"pattern": flat["pattern"]}
        else:
            drop("pattern")
    if "format" in flat:
        if flat["format"] in dialect.formats and not held:
            held = {"format": flat["format"]}
        else:
            drop("format")
    return held


def holds_pattern(pattern: Any, kind: str) -> bool:
    """Whether a dialect that takes patterns of this kind holds this one."""
    branches = read_pattern(pattern) if isinstance(pattern, str) and kind != "none" else None
    if branches is None:
        return False
    if kind == "unescaped":
        return not any(_excludes_escaped(chars) for branch in branches for chars in classes_of(branch.node))
    return kind != "anchored" or (len(branches) == 1 and branches[0].from_start and branches[0].to_end)


def _excludes_escaped(chars: Chars) -> bool:
    """Return whether a negated class excludes a character that JSON escapes."""
    inside = [any(low <= ord(character) <= high for low, high in chars.ranges) for character in '"\\']
    return not all(inside) and chars.ranges[-1:] != () and chars.ranges[-1][1] == LAST


def _lengths(flat: JsonObject, dialect: Dialect, limits: Limits, drop: Drop) -> JsonObject:
    if not dialect.keeps >= LENGTHS:
        for keyword in sorted(LENGTHS & set(flat)):
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


def number(kind: str, flat: JsonObject, dialect: Dialect, drop: Drop) -> JsonObject:
    """A number or a whole number with the bounds that are held."""
    whole = kind == "integer"
    result: JsonObject = {"type": kind}
    for keyword in sorted((NUMBERS | {"multipleOf"}) & set(flat)):
        value = flat[keyword]
        bound = isinstance(value, int | float) and not isinstance(value, bool)
        held = bound and keyword in dialect.keeps and (whole or dialect.fractions)
        if not held:
            drop(keyword)
        else:
            result[keyword] = value
    return _whole_bounds(result) if whole and not dialect.fractions else result


def _whole_bounds(schema: JsonObject) -> JsonObject:
    """Whole numbers between `minimum` and `maximum` only: grammars count in these."""
    result = {"type": "integer"}
    lows = [-(-value // 1) for value in _given(schema, "minimum")]
    lows += [value // 1 + 1 for value in _given(schema, "exclusiveMinimum")]
    highs = [value // 1 for value in _given(schema, "maximum")]
    highs += [-(-value // 1) - 1 for value in _given(schema, "exclusiveMaximum")]
    if lows and highs and max(lows) > min(highs):
        highs = []
    bounds = {**({"minimum": int(max(lows))} if lows else {}), **({"maximum": int(min(highs))} if highs else {})}
    return {**result, **bounds, **({"multipleOf": schema["multipleOf"]} if "multipleOf" in schema else {})}


def _given(schema: JsonObject, keyword: str) -> list[float]:
    return [schema[keyword]] if keyword in schema else []
