"""Equal parts of a schema written once: what llguidance has to read is what a grammar costs it."""

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
    """The same schema, as the normaliser writes them, where every part that stands in several places is a definition
    `same…` and each place a reference to it."""
    parts = _SchemaParts()
    root = parts.number(schema)
    parts.choose()
    written = parts.written(root)
    shared = {name: parts.written(number) for number, name in parts.names.items()}
    return {**written, "$defs": {**written.get("$defs", {}), **shared}} if shared else written


class _SchemaParts:
    """Every distinct part once, by number, with the numbers of its own parts in their places. `names` are those of
    the parts that become definitions."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._parts: list[JsonObject] = []
        self._numbers: dict[str, int] = {}

    def number(self, schema: JsonObject) -> int:
        part = _map_parts(schema, lambda inner: self.number(inner) if isinstance(inner, dict) else inner)
        number = self._numbers.setdefault(write_json(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def choose(self) -> None:
        uses = Counter(number for part in self._parts for number in _list_part_numbers(part))
        for text, number in self._numbers.items():
            if uses[number] > 1 and len(text) >= MIN_SHARED_CHARACTERS and "$ref" not in self._parts[number]:
                self.names[number] = f"same{len(self.names)}"

    def written(self, number: int) -> JsonObject:
        """A part as a schema, with references to the definitions among its own parts."""
        return _map_parts(self._parts[number], self._place)

    def _place(self, inner: Any) -> Any:
        if isinstance(inner, bool):
            return inner
        return {"$ref": f"#/$defs/{self.names[inner]}"} if inner in self.names else self.written(inner)


def _map_parts(schema: JsonObject, made: Any) -> JsonObject:
    """The schema with something else made of each of its parts."""
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
