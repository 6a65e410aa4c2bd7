"""Deduplication of a schema: what llguidance reads is what a grammar costs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

MIN_SHARED_CHARACTERS = 24  # characters; anything shorter costs as much as a reference to it
SCHEMA_KEYWORDS = ("items", "additionalProperties")
SCHEMA_LIST_KEYWORDS = ("anyOf", "prefixItems")
SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties", "$defs")


def deduplicate_schema(schema: JsonObject) -> JsonObject:
    """Return the normalised schema with repeated parts as definitions `same…`, and references to them."""
    parts = _SchemaParts()
    root = parts.number(schema)
    parts.choose()
    written = parts.written(root)
    shared = {name: parts.written(number) for number, name in parts.names.items()}
    return {**written, "$defs": {**written.get("$defs", {}), **shared}} if shared else written


class _SchemaParts:
    """The distinct parts of a schema by number, with the numbers of their own parts.

    Attributes:
        names: names of the parts that become definitions, by number.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._parts: list[JsonObject] = []
        self._numbers: dict[str, int] = {}

    def number(self, schema: JsonObject) -> int:
        """Return the number of a part; equal parts have one number."""
        part = _map_parts(schema, lambda inner: self.number(inner) if isinstance(inner, dict) else inner)
        number = self._numbers.setdefault(write_json(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def choose(self) -> None:
        """Name the parts that become definitions."""
        uses = Counter(number for part in self._parts for number in _list_part_numbers(part))
        for text, number in self._numbers.items():
            if uses[number] > 1 and len(text) >= MIN_SHARED_CHARACTERS and "$ref" not in self._parts[number]:
                self.names[number] = f"same{len(self.names)}"

    def written(self, number: int) -> JsonObject:
        """Return a part as a schema, with references to the definitions."""
        return _map_parts(self._parts[number], self._place)

    def _place(self, inner: Any) -> Any:
        if isinstance(inner, bool):
            return inner
        return {"$ref": f"#/$defs/{self.names[inner]}"} if inner in self.names else self.written(inner)


def _map_parts(schema: JsonObject, made: Any) -> JsonObject:
    """Return the schema with each of its parts replaced."""
    result = dict(schema)
    for keyword in SCHEMA_KEYWORDS:
        if keyword in schema:
            result[keyword] = made(schema[keyword])
    for keyword in SCHEMA_LIST_KEYWORDS:
        if keyword in schema:
            result[keyword] = [made(inner) for inner in schema[keyword]]
    for keyword in SCHEMA_MAP_KEYWORDS:
        if keyword in schema:
            result[keyword] = {name: made(inner) for name, inner in schema[keyword].items()}
    return result


def _list_part_numbers(part: JsonObject) -> Iterator[int]:
    inner = [part[keyword] for keyword in SCHEMA_KEYWORDS if keyword in part]
    for keyword in SCHEMA_LIST_KEYWORDS:
        inner += part.get(keyword, ())
    for keyword in SCHEMA_MAP_KEYWORDS:
        inner += part.get(keyword, {}).values()
    return (number for number in inner if not isinstance(number, bool))
