"""Conversion of tagged values, which are plain text, to the types in the tool's schema."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.types import ToolSchemas
from toolbench.engine.strict_json import read_json

Occurrence = TypeVar("Occurrence")

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
    "string": (str,),
}
_VENDOR_WORDS = {
    "integer": "integer int uint long short bigint unsigned",
    "number": "number num numeric float double decimal real",
    "boolean": "boolean bool",
    "null": "null none nil nonetype void",
    "array": "array arr list tuple set sequence",
    "object": "object dict dictionary map mapping hashmap struct",
    "": "any",
}
_TYPE_BY_WORD = {word: kind for kind, words in _VENDOR_WORDS.items() for word in words.split()}
_FIRST_WORD = re.compile(r"[a-z]+")
_UNIONS = ("anyOf", "oneOf", "allOf")
_MAX_REFERENCES = 16  # nested references and unions that are followed
_MAX_EXACT_FLOAT = 2.0**63  # whole floats up to this limit are converted to integers


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """The values that a schema allows.

    Attributes:
        kinds: JSON types of which any value is allowed.
        listed: single values that enums and constants allow.
    """

    kinds: frozenset[str]
    listed: tuple[Any, ...] = ()

    @property
    def all_kinds(self) -> set[str]:
        """The JSON types of all allowed values."""
        return {*self.kinds, *map(_get_json_type, self.listed)}


def convert_value(text: str, tool: str, name: str, known: ToolSchemas) -> Any:
    """Convert the text of a tool's parameter to a value, as in `convert_by_schema`."""
    return convert_by_schema(text, known.parameter(tool, name), known.schemas.get(tool, {}), known)


def convert_items(text: str, tool: str, name: str, known: ToolSchemas) -> list[Any]:
    """Convert the text of a list parameter to items: those of a list, or one item of the items' schema."""
    value = convert_value(text, tool, name, known)
    if isinstance(value, list):
        return value
    root = known.schemas.get(tool, {})
    return [convert_by_schema(text, find_subschema(known.parameter(tool, name), "", root), root, known)]


def list_items(value: Any) -> list[Any]:
    """Return `value` if it is a list, else a list of this one item."""
    return value if isinstance(value, list) else [value]


def is_list_allowed(tool: str, name: str, known: ToolSchemas) -> bool:
    """Return whether a tool's schema allows a list for a parameter."""
    return "array" in get_allowed_types(known.parameter(tool, name), known.schemas.get(tool, {}))


def convert_by_schema(text: str, schema: object, root: Mapping[str, Any], known: ToolSchemas) -> Any:
    """Convert an untyped text to a value that a schema allows.

    The first rule that applies decides:
    - If the schema does not restrict the type, the value is the text, or with `known.guess_untyped` its JSON value.
    - If an enum or constant contains the text, with or without outer white space, that string is the value.
    - If any string is allowed, the value is the text, or None for `null` if the schema allows null.
    - If the text is JSON or a Python literal of an allowed type or value, that is the value; otherwise the text is.

    Args:
        text: the text as the model wrote it.
        schema: the schema of the value.
        root: the tool's whole schema, in which references are resolved.
        known: the schemas of all tools.
    """
    allowed = _get_allowed(schema, root)
    kinds = allowed.all_kinds
    if not kinds:
        return _guess_value(text) if known.guess_untyped else text
    stripped = text.strip()
    if text in allowed.listed or stripped in allowed.listed:
        return text if text in allowed.listed else stripped
    if "string" in allowed.kinds:
        return None if stripped == "null" and "null" in kinds else text
    try:
        value = read_value(text)
    except InvalidJsonError:
        return text
    for listed_value in allowed.listed:
        if isinstance(listed_value, bool) == isinstance(value, bool) and listed_value == value:
            return listed_value
    return _convert_to_types(value, allowed.kinds if "string" in kinds else kinds, text)


def get_allowed_types(schema: object, root: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema inside of `root` allows.

    The set is empty if the schema does not restrict them.
    """
    return _get_allowed(schema, root).all_kinds


def find_json_type(word: str) -> str:
    """Return the JSON type for a type name such as `int64`, `Dict` or `list[str]`.

    The result is "" for `any`, and `string` for an unknown name.
    """
    match = _FIRST_WORD.match(word.strip().lower())
    return _TYPE_BY_WORD.get(match.group(), "string") if match else "string"


def group_by_key(
    found: Iterable[tuple[str, Occurrence]],
    value: Callable[[str, Occurrence], Any],
    items: Callable[[str, Occurrence], Sequence[Any]],
    lists: Callable[[str], bool],
    notes: set[str],
) -> dict[str, Any]:
    """Return values by key.

    A repeated key becomes a list if a list is allowed for it. Else its last value counts.

    Args:
        found: pairs of a key and one of its occurrences, in the order of the text.
        value: returns the value of one occurrence.
        items: returns the items that one occurrence adds to a list.
        lists: returns whether a key may have a list.
        notes: receives `parameter_repeated` if a key is repeated and may not have a list.
    """
    by_key: dict[str, list[Occurrence]] = {}
    for key, occurrence in found:
        by_key.setdefault(key, []).append(occurrence)
    values: dict[str, Any] = {}
    for key, occurrences in by_key.items():
        values[key] = value(key, occurrences[-1])
        if len(occurrences) > 1 and lists(key):
            values[key] = [item for value in occurrences for item in items(key, value)]
        elif len(occurrences) > 1:
            notes.add("parameter_repeated")
    return values


def find_subschema(schema: object, key: str, root: Mapping[str, Any]) -> object:
    """Return the schema of the property `key`, or of an array's items if the key is "".

    The result is None if there is no such schema.
    """
    schemas, hops = [schema], _MAX_REFERENCES
    while schemas and hops:
        subschema, hops = schemas.pop(0), hops - 1
        if not isinstance(subschema, Mapping):
            continue
        properties = subschema.get("properties")
        property_schema = properties.get(key) if isinstance(properties, Mapping) else None
        found_schema = subschema.get("items") if not key else property_schema or subschema.get("additionalProperties")
        if isinstance(found_schema, Mapping):
            return found_schema
        schemas += [
            _find_reference(subschema.get("$ref"), root),
            *(b for u in _UNIONS for b in _get_list(subschema, u)),
        ]
    return None


def parse_as_types(text: str, kinds: Iterable[str]) -> Any:
    """Return the JSON value or Python literal in `text` if it has one of these types, else the text."""
    try:
        return _convert_to_types(read_value(text), set(map(find_json_type, kinds)), text)
    except InvalidJsonError:
        return text


def _convert_to_types(value: Any, kinds: Collection[str], text: str) -> Any:
    if isinstance(value, float) and "integer" in kinds and "number" not in kinds and abs(value) < _MAX_EXACT_FLOAT:
        return int(value) if value.is_integer() else text
    return value if _has_type(value, kinds) else text


def _has_type(value: Any, kinds: Iterable[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES.get(kind, ())) for kind in kinds)


def _guess_value(text: str) -> Any:
    try:
        return read_json(text)
    except InvalidJsonError:
        return text


def _get_allowed(schema: object, root: Mapping[str, Any]) -> AllowedValues:
    """Return the values that a schema inside of `root` allows."""
    kinds: set[str] = set()
    listed_values: list[Any] = []
    for part in _iterate_subschemas(schema, root, _MAX_REFERENCES):
        types = {kind for kind in map(find_json_type, _list_type_words(part)) if kind}
        values = [*_get_list(part, "enum"), *([part["const"]] if "const" in part else [])]
        fitting_values = [value for value in values if not types or _has_type(value, types)]
        listed_values += fitting_values
        if not fitting_values:
            kinds |= types
        if part.get("nullable") is True:
            kinds.add("null")
        if not types:
            kinds |= {implied for key, implied in (("properties", "object"), ("items", "array")) if key in part}
    return AllowedValues(frozenset(kinds), tuple(listed_values))


def _iterate_subschemas(schema: object, root: Mapping[str, Any], hops: int) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, the branches of its unions and the schemas that it refers to."""
    if not isinstance(schema, Mapping) or hops == 0:
        return
    yield schema
    for union in _UNIONS:
        for branch in _get_list(schema, union):
            yield from _iterate_subschemas(branch, root, hops - 1)
    yield from _iterate_subschemas(_find_reference(schema.get("$ref"), root), root, hops - 1)


def _list_type_words(schema: Mapping[str, Any]) -> list[str]:
    declared = schema.get("type")
    words = declared if isinstance(declared, list) else [declared]
    return [word for word in words if isinstance(word, str)]


def _get_list(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _get_json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((kind for kind, types in _TYPES.items() if isinstance(value, types)), "string")


def _find_reference(reference: object, root: Mapping[str, Any]) -> object:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    part: object = root
    for step in reference[2:].split("/"):
        part = part.get(step) if isinstance(part, Mapping) else None
    return part
