"""Count of the schemas that a validator applies to one value: unions and references can multiply them."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.json_paths import follow_reference

_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf")
_SCHEMA_KEYWORDS = ("not", "if", "then", "else")


def count_applied_schemas(root: Any, limit: int) -> int:
    """Return the largest number of schemas that a validator may apply to one value, or `limit` if there are more.

    A schema counts once for each way in which unions and references lead to it. A reference that closes a cycle adds
    nothing, since validators stop there. Schemas of items and properties are applied to other values, so that each of
    them starts a count of its own.

    Args:
        root: a JSON Schema, which must not be nested too deeply for recursive code.
        limit: at least 1.
    """
    schemas = list(_iterate_objects(root))
    schema_by_anchor = {f"#{schema['$anchor']}": schema for schema in schemas if isinstance(schema.get("$anchor"), str)}
    counts_by_id: dict[int, int] = {}

    def count(schema: Any) -> int:
        if not isinstance(schema, Mapping):
            return 0
        if id(schema) not in counts_by_id:
            counts_by_id[id(schema)] = 0  # for references back to it while its parts are counted
            part_counts = map(count, _list_parts(schema, root, schema_by_anchor))
            counts_by_id[id(schema)] = min(1 + sum(part_counts), limit)
        return counts_by_id[id(schema)]

    return max(map(count, schemas), default=0)


def _iterate_objects(root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a schema; each schema is one of them."""
    pending_values = [root]
    while pending_values:
        value = pending_values.pop()
        if isinstance(value, Mapping):
            yield value
            pending_values += value.values()
        elif isinstance(value, list):
            pending_values += value


def _list_parts(schema: Mapping[str, Any], root: Any, schema_by_anchor: Mapping[str, Any]) -> list[Any]:
    """Return the schemas inside a schema that are applied to the same value as the schema."""
    parts = [schema.get(keyword) for keyword in _SCHEMA_KEYWORDS]
    for keyword in _LIST_KEYWORDS:
        if isinstance(branches := schema.get(keyword), list):
            parts += branches
    if isinstance(dependent_schemas := schema.get("dependentSchemas"), Mapping):
        parts += dependent_schemas.values()
    if isinstance(reference := schema.get("$ref"), str):
        parts.append(_find_target(reference, root, schema_by_anchor))
    return parts


def _find_target(reference: str, root: Any, schema_by_anchor: Mapping[str, Any]) -> Any:
    """Return the schema to which a reference refers; None if there is none in this document."""
    if reference != "#" and not reference.startswith("#/"):
        return schema_by_anchor.get(reference)
    try:
        return follow_reference(root, reference)
    except KeyError:
        return None
