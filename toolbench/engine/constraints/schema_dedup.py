"""Deduplication of a schema, because the time to compile a grammar grows with the length of its text."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

# Length of `{"$ref":"#/$defs/same0"}`: shorter parts are not replaced. Inner parts are counted as their numbers.
MIN_SHARED_CHARACTERS = 24
SCHEMA_KEYWORDS = ("items", "additionalProperties")
SCHEMA_LIST_KEYWORDS = ("anyOf", "prefixItems")
SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties", "$defs")


def deduplicate_schema(schema: JsonObject) -> JsonObject:
    """Replace long, repeated parts of a normalised schema by references to definitions (`same0`, `same1` …)."""
    parts = _SchemaParts()
    root = parts.add_part(schema)
    parts.name_repeated_parts()
    rendered_schema = parts.render_part(root)
    definitions = {name: parts.render_part(number) for number, name in parts.names.items()}
    return (
        {**rendered_schema, "$defs": {**rendered_schema.get("$defs", {}), **definitions}}
        if definitions
        else rendered_schema
    )


class _SchemaParts:
    """The distinct schemas inside a schema, and the schema itself, numbered from 0.

    In each part, inner parts are replaced by their numbers.

    Attributes:
        names: names of the parts that become definitions, by number.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._parts: list[JsonObject] = []
        self._number_by_text: dict[str, int] = {}

    def add_part(self, schema: JsonObject) -> int:
        """Add a part with its inner parts and return its number; equal parts have the same number."""
        part = _map_parts(
            schema, lambda inner_part: self.add_part(inner_part) if isinstance(inner_part, dict) else inner_part
        )
        number = self._number_by_text.setdefault(write_json(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def name_repeated_parts(self) -> None:
        """Name the parts that become definitions: those that are repeated, long enough and not references."""
        use_counts = Counter(number for part in self._parts for number in _list_part_numbers(part))
        for text, number in self._number_by_text.items():
            if use_counts[number] > 1 and len(text) >= MIN_SHARED_CHARACTERS and "$ref" not in self._parts[number]:
                self.names[number] = f"same{len(self.names)}"

    def render_part(self, number: int) -> JsonObject:
        """Return a part as a schema, with references to the definitions of its inner parts."""
        return _map_parts(self._parts[number], self._render_inner)

    def _render_inner(self, inner_part: Any) -> Any:
        if isinstance(inner_part, bool):
            return inner_part
        return (
            {"$ref": f"#/$defs/{self.names[inner_part]}"} if inner_part in self.names else self.render_part(inner_part)
        )


def _map_parts(schema: JsonObject, convert: Any) -> JsonObject:
    """Return the schema with each inner schema replaced by the result of `convert`."""
    result = dict(schema)
    for keyword in SCHEMA_KEYWORDS:
        if keyword in schema:
            result[keyword] = convert(schema[keyword])
    for keyword in SCHEMA_LIST_KEYWORDS:
        if keyword in schema:
            result[keyword] = [convert(inner_part) for inner_part in schema[keyword]]
    for keyword in SCHEMA_MAP_KEYWORDS:
        if keyword in schema:
            result[keyword] = {name: convert(inner_part) for name, inner_part in schema[keyword].items()}
    return result


def _list_part_numbers(part: JsonObject) -> Iterator[int]:
    """Return the numbers of the parts inside a part, each as often as it occurs."""
    inner_values = [part[keyword] for keyword in SCHEMA_KEYWORDS if keyword in part]
    for keyword in SCHEMA_LIST_KEYWORDS:
        inner_values += part.get(keyword, ())
    for keyword in SCHEMA_MAP_KEYWORDS:
        inner_values += part.get(keyword, {}).values()
    return (number for number in inner_values if not isinstance(number, bool))
