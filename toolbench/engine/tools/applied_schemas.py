"""Count of the schemas that a validator applies to one value: unions and references can multiply them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from toolbench.engine.json_paths import follow_reference

FREE_SCHEMAS = 20  # of each value, so that the number of values in arguments is not limited
_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf")
_SCHEMA_KEYWORDS = ("not", "if", "then", "else")
_ITEM_KEYWORDS = ("contains", "additionalItems", "unevaluatedItems")


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
    schema_by_anchor = _map_anchors(root)
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


class ApplicationCounter:
    """Counter of the schemas that a validator applies to arguments and all values inside of them.

    With a recursive schema, each level of the arguments can multiply this number.

    Args:
        root: a JSON Schema, which must not be nested too deeply for recursive code.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._schema_by_anchor = _map_anchors(root)
        self._schema_by_id = {id(schema): schema for schema in _iterate_objects(root)}

    def count(self, arguments: Any, limit: int) -> int:
        """Return the number of schemas beyond FREE_SCHEMAS for each value, or `limit` if there are more.

        They count as in `count_applied_schemas`.
        """
        total, pending = 0, [(arguments, frozenset(Counter(_list_ids([self._root])).items()))]
        # Most values of a list and of a tree have the same schemas. The results are not kept for other calls, because
        # threads may share this counter.
        apply = cache(partial(self._apply, applied_by_id={}))
        list_member_schemas = cache(self._count_member_schemas)
        while pending and total < limit:
            value, entered = pending.pop()
            applied = apply(entered)
            total += max(0, sum(times for _, times in applied) - FREE_SCHEMAS)
            members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            pending += [(member, schemas) for key, member in members if (schemas := list_member_schemas(applied, key))]
        return min(total, limit)

    def _apply(
        self, entered: frozenset[tuple[int, int]], applied_by_id: dict[int, Counter[int]]
    ) -> frozenset[tuple[int, int]]:
        """Return all schemas that are applied to a value, because the schemas `entered` are.

        Args:
            entered: ids of schemas, each with the number of its applications.
            applied_by_id: as in `_expand`.
        """
        applied: Counter[int] = Counter()
        for schema_id, times in entered:
            for inner_id, inner_times in self._expand(schema_id, applied_by_id).items():
                applied[inner_id] += times * inner_times
        return frozenset(applied.items())

    def _count_member_schemas(self, applied: frozenset[tuple[int, int]], key: str | int) -> frozenset[tuple[int, int]]:
        counts: Counter[int] = Counter()
        for schema_id, times in applied:
            for member_id in _list_ids(_list_member_schemas(self._schema_by_id[schema_id], key)):
                counts[member_id] += times
        return frozenset(counts.items())

    def _expand(self, schema_id: int, applied_by_id: dict[int, Counter[int]]) -> Counter[int]:
        """Return the ids of the schemas that a schema applies to its value; `applied_by_id` has earlier results."""
        if schema_id not in applied_by_id:
            applied_by_id[schema_id] = Counter()  # for references back to it while its parts are expanded
            applied = Counter([schema_id])
            for part_id in _list_ids(_list_parts(self._schema_by_id[schema_id], self._root, self._schema_by_anchor)):
                applied.update(self._expand(part_id, applied_by_id))
            applied_by_id[schema_id] = applied
        return applied_by_id[schema_id]


def can_multiply(root: Any, limit: int) -> bool:
    """Return whether a validator may apply `limit` schemas to arguments without a list, because references repeat.

    Args:
        root: as in `count_applied_schemas`.
        limit: at least 1.
    """
    schema_by_anchor = _map_anchors(root)
    counts_by_id: dict[int, int] = {}

    def count(value: Any) -> int:
        if not isinstance(value, Mapping | list):
            return 0
        if id(value) not in counts_by_id:
            counts_by_id[id(value)] = limit  # of a value that contains itself
            parts = list(value.values()) if isinstance(value, Mapping) else value
            if isinstance(value, Mapping) and isinstance(reference := value.get("$ref"), str):
                parts = [*parts, _find_target(reference, root, schema_by_anchor)]
            counts_by_id[id(value)] = min(1 + sum(map(count, parts)), limit)
        return counts_by_id[id(value)]

    try:
        return count(root) >= limit
    except RecursionError:  # a long chain of references
        return True


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


def _list_ids(schemas: list[Any]) -> list[int]:
    return [id(schema) for schema in schemas if isinstance(schema, Mapping)]


def _map_anchors(root: Any) -> dict[str, Mapping[str, Any]]:
    schemas = _iterate_objects(root)
    return {f"#{schema['$anchor']}": schema for schema in schemas if isinstance(schema.get("$anchor"), str)}


def _list_member_schemas(schema: Mapping[str, Any], key: str | int) -> list[Any]:
    """Return the schemas inside a schema that may be applied to the value of a key or to an item of a list."""
    if isinstance(key, int):
        items = [schema.get(keyword) for keyword in ("items", "prefixItems")]
        positional = [part[key] for part in items if isinstance(part, list) and key < len(part)]
        return [*items, *positional, *(schema.get(keyword) for keyword in _ITEM_KEYWORDS)]
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    named = [properties[key]] if isinstance(properties, Mapping) and key in properties else []
    matching = list(patterns.values()) if isinstance(patterns, Mapping) else []
    return [*(named or [schema.get("additionalProperties")]), *matching, schema.get("unevaluatedProperties")]


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
