"""Strings and numbers in the form that a constraint enforces."""

from collections.abc import Callable
from typing import Any

from toolbench.engine.constraints.gbnf_text import render_json_class
from toolbench.engine.constraints.regex import MAX_CODE_POINT, CharacterClass, iterate_classes, parse_pattern
from toolbench.engine.constraints.schema_support import LENGTH_KEYWORDS, NUMBER_KEYWORDS, SchemaSupport, SizeLimits
from toolbench.engine.types import JsonObject

OnKeywordDropped = Callable[[str], None]  # takes a keyword

UNCHECKED_KEYWORDS = ("contentEncoding", "contentMediaType", "contentSchema")  # no constraint enforces them


def normalise_string(
    merged_schema: JsonObject, support: SchemaSupport, limits: SizeLimits, on_dropped: OnKeywordDropped
) -> JsonObject:
    """Return a string schema with the pattern, format or bounds of the length that are enforced.

    With a format, no length is enforced. With a pattern, the length is enforced only if the constraint supports both
    (`combines_length_and_pattern`). For GBNF the maximum length is kept nevertheless: in a pattern it limits
    repetitions without a maximum, and the text at an end without an anchor.

    Args:
        merged_schema: the schema without references.
        support: the keywords that the constraint enforces.
        limits: the maximum length of strings whose schema has none.
        on_dropped: called with each keyword that is not enforced.
    """
    for keyword in UNCHECKED_KEYWORDS:
        if keyword in merged_schema:
            on_dropped(keyword)
    kept_keywords = _select_string_constraint(merged_schema, support, on_dropped)
    lengths = _normalise_lengths(merged_schema, support, limits, on_dropped)
    if not kept_keywords or ("pattern" in kept_keywords and support.combines_length_and_pattern):
        return {"type": "string", **kept_keywords, **lengths}
    for keyword in sorted(LENGTH_KEYWORDS & set(merged_schema)):
        on_dropped(keyword)
    has_max_length = "pattern" in kept_keywords and support.pattern_support == "plain"
    return {"type": "string", **kept_keywords, **({"maxLength": lengths["maxLength"]} if has_max_length else {})}


def _select_string_constraint(
    merged_schema: JsonObject, support: SchemaSupport, on_dropped: OnKeywordDropped
) -> JsonObject:
    """Return the `pattern` or else the `format` that is enforced; {} if neither is."""
    kept_keywords: JsonObject = {}
    if "pattern" in merged_schema:
        if is_pattern_supported(merged_schema["pattern"], support.pattern_support):
            kept_keywords = {"pattern": merged_schema["pattern"]}
        else:
            on_dropped("pattern")
    if "format" in merged_schema:
        if merged_schema["format"] in support.formats and not kept_keywords:
            kept_keywords = {"format": merged_schema["format"]}
        else:
            on_dropped("format")
    return kept_keywords


def is_pattern_supported(pattern: Any, pattern_support: str) -> bool:
    """Return whether a constraint enforces a pattern; see `SchemaSupport.pattern_support`."""
    branches = parse_pattern(pattern) if isinstance(pattern, str) and pattern_support != "none" else None
    if branches is None:
        return False
    character_classes = [part for branch in branches for part in iterate_classes(branch.node)]
    if pattern_support == "unescaped":
        return not any(map(_excludes_quote_or_backslash, character_classes))
    if pattern_support == "plain":
        return all(render_json_class(character_class.ranges) for character_class in character_classes)
    return pattern_support != "anchored" or (
        len(branches) == 1 and branches[0].is_anchored_at_start and branches[0].is_anchored_at_end
    )


def _excludes_quote_or_backslash(character_class: CharacterClass) -> bool:
    """Return whether a class is negated and excludes `"` or the backslash.

    A class that contains the last code point counts as negated.
    """
    are_contained = [any(low <= ord(character) <= high for low, high in character_class.ranges) for character in '"\\']
    return (
        not all(are_contained) and character_class.ranges[-1:] != () and character_class.ranges[-1][1] == MAX_CODE_POINT
    )


def _normalise_lengths(
    merged_schema: JsonObject, support: SchemaSupport, limits: SizeLimits, on_dropped: OnKeywordDropped
) -> JsonObject:
    """Return the enforced bounds of a string's length; `on_dropped` is called with the other keywords."""
    if not support.keywords >= LENGTH_KEYWORDS:
        for keyword in sorted(LENGTH_KEYWORDS & set(merged_schema)):
            on_dropped(keyword)
        return {}
    min_length = int(merged_schema.get("minLength", 0))
    max_length = int(merged_schema.get("maxLength", max(limits.max_string_length, min_length)))
    if support.max_length is not None and min_length > support.max_length:
        on_dropped("minLength")
        min_length = 0
    max_length = min(max_length, support.max_length) if support.max_length is not None else max_length
    if min_length > max_length:
        on_dropped("minLength")
        min_length = 0
    return {**({"minLength": min_length} if min_length else {}), "maxLength": max_length}


def normalise_number(
    json_type: str, merged_schema: JsonObject, support: SchemaSupport, on_dropped: OnKeywordDropped
) -> JsonObject:
    """Return a number schema with the bounds and the `multipleOf` that are enforced.

    Args:
        json_type: `integer` or `number`.
        merged_schema: the schema without references.
        support: the keywords that the constraint enforces.
        on_dropped: called with each keyword that is not enforced.
    """
    is_integer = json_type == "integer"
    normalised_schema: JsonObject = {"type": json_type}
    for keyword in sorted((NUMBER_KEYWORDS | {"multipleOf"}) & set(merged_schema)):
        value = merged_schema[keyword]
        is_supported = keyword in support.keywords and (is_integer or support.enforces_number_bounds)
        if not is_supported or not _is_number_below(value, support.bound_limit):
            on_dropped(keyword)
        else:
            normalised_schema[keyword] = value
    if is_integer and not support.enforces_number_bounds:
        return _round_bounds(normalised_schema, on_dropped)
    return normalised_schema


def _is_number_below(value: Any, limit: int | None) -> bool:
    """Return whether a value is a number whose absolute value is below `limit`, also when it is rounded to a float.

    A `limit` of None allows every number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return limit is None or (abs(value) < limit and abs(float(value)) < limit)


def _round_bounds(schema: JsonObject, on_dropped: OnKeywordDropped) -> JsonObject:
    """Return an integer schema with its bounds as whole numbers in `minimum` and `maximum`.

    The grammars of llama.cpp require this form. If the bounds exclude every number, the upper bounds are left out, and
    `on_dropped` is called with their keywords.
    """
    minimums = [-(-value // 1) for value in _list_bound(schema, "minimum")]
    minimums += [value // 1 + 1 for value in _list_bound(schema, "exclusiveMinimum")]
    maximums = [value // 1 for value in _list_bound(schema, "maximum")]
    maximums += [-(-value // 1) - 1 for value in _list_bound(schema, "exclusiveMaximum")]
    if minimums and maximums and max(minimums) > min(maximums):
        maximums = []
        for keyword in sorted({"maximum", "exclusiveMaximum"} & set(schema)):
            on_dropped(keyword)
    return {
        "type": "integer",
        **({"minimum": int(max(minimums))} if minimums else {}),
        **({"maximum": int(min(maximums))} if maximums else {}),
    }


def _list_bound(schema: JsonObject, keyword: str) -> list[float]:
    return [schema[keyword]] if keyword in schema else []
