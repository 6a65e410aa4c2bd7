"""Bounds of the number of items of a list and of keys of an object, in the form that a constraint enforces."""

from collections.abc import Callable
from typing import Any

from toolbench.engine.constraints.schema_support import SchemaSupport
from toolbench.engine.types import JsonObject

OnBoundDropped = Callable[[str, Any, str], None]  # takes a keyword, its value and a description of the enforced bound

MAX_COUNT = 10**6  # largest bound that is enforced


def normalise_item_counts(
    schema: JsonObject, support: SchemaSupport, max_items: int, on_dropped: OnBoundDropped
) -> JsonObject:
    """Return the enforced bounds of the number of items; the upper one is the smaller of `max_items` and MAX_COUNT."""
    min_items, max_items = int(schema.get("minItems", 0)), min(max_items, MAX_COUNT)
    limit = max_items if support.max_min_items is None else min(max_items, support.max_min_items)
    if min_items > limit:
        on_dropped("minItems", schema["minItems"], f"at least {limit}")
        min_items = limit
    bounds = {"minItems": min_items} if min_items else {}
    if "maxItems" in support.keywords:
        return {**bounds, "maxItems": max_items}
    if "maxItems" in schema:
        on_dropped("maxItems", schema["maxItems"], "")
    return bounds


def normalise_key_counts(
    schema: JsonObject,
    named_count: int,
    default_max_keys: int | None,
    on_dropped: OnBoundDropped,
    *,
    has_other_keys: bool,
) -> JsonObject:
    """Return the bounds of the number of keys, for a constraint that enforces them.

    Args:
        schema: the schema without references.
        named_count: number of named keys, which are all required.
        default_max_keys: the upper bound if the schema has none; None for no bound.
        on_dropped: called with each bound that is replaced, because no allowed object can meet it.
        has_other_keys: whether the constraint allows further keys.
    """
    min_keys = int(schema.get("minProperties", 0))
    max_keys = int(schema["maxProperties"]) if "maxProperties" in schema else None
    if max_keys is not None and max_keys < named_count:
        on_dropped("maxProperties", schema["maxProperties"], f"at most {named_count}")
        max_keys = named_count
    elif max_keys is None and default_max_keys is not None:
        max_keys = max(default_max_keys, min_keys, named_count)
    most_keys = (MAX_COUNT if max_keys is None else min(max_keys, MAX_COUNT)) if has_other_keys else named_count
    if min_keys > most_keys:
        on_dropped("minProperties", schema["minProperties"], f"at least {most_keys}")
        min_keys = most_keys
    if not has_other_keys:
        return {}
    return {
        **({"minProperties": min_keys} if min_keys else {}),
        **({"maxProperties": most_keys} if max_keys is not None else {}),
    }
