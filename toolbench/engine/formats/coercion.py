"""Conversion of the text between tags to a value of a type that the tool's schema allows."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.types import ToolSchemas
from toolbench.engine.json_paths import follow_reference
from toolbench.engine.strict_json import read_json

Occurrence = TypeVar("Occurrence")

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
    "string": (str,),
}
_TYPE_WORDS = {
    "integer": "integer int uint long short bigint unsigned",
    "number": "number num numeric float double decimal real",
    "boolean": "boolean bool",
    "null": "null none nil nonetype void",
    "array": "array arr list tuple set sequence",
    "object": "object dict dictionary map mapping hashmap struct",
    "": "any",
}
_TYPE_BY_WORD = {word: json_type for json_type, words in _TYPE_WORDS.items() for word in words.split()}
_FIRST_WORD = re.compile(r"[a-z]+")
_UNION_KEYS = ("anyOf", "oneOf", "allOf")
_MAX_WHOLE_FLOAT = 2.0**63  # whole floats nearer to 0 than this become integers where a schema requires them


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """The values that a schema allows.

    Attributes:
        types: JSON types; every value of these types is allowed.
        listed_values: single values that enums and constants allow.
    """

    types: frozenset[str]
    listed_values: tuple[Any, ...] = ()

    @property
    def all_types(self) -> set[str]:
        """The JSON types of all allowed values."""
        return {*self.types, *map(_get_json_type, self.listed_values)}


def convert_value(text: str, tool_name: str, parameter_name: str, offered_tools: ToolSchemas) -> Any:
    """Convert the text of a tool's parameter to a value, as in `convert_by_schema`."""
    schema = offered_tools.find_parameter(tool_name, parameter_name)
    return convert_by_schema(text, schema, offered_tools.schemas.get(tool_name, {}), offered_tools)


def convert_items(text: str, tool_name: str, parameter_name: str, offered_tools: ToolSchemas) -> list[Any]:
    """Return the items in the text of a list parameter: those of a list, or the converted text as the only item."""
    value = convert_value(text, tool_name, parameter_name, offered_tools)
    if isinstance(value, list):
        return value
    root = offered_tools.schemas.get(tool_name, {})
    item_schema = find_subschema(offered_tools.find_parameter(tool_name, parameter_name), "", root)
    return [convert_by_schema(text, item_schema, root, offered_tools)]


def list_items(value: Any) -> list[Any]:
    """Return `value` if it is a list, else a list of this one item."""
    return value if isinstance(value, list) else [value]


def is_list_allowed(tool_name: str, parameter_name: str, offered_tools: ToolSchemas) -> bool:
    """Return whether a tool's schema allows a list for a parameter; False if it allows any type."""
    schema = offered_tools.find_parameter(tool_name, parameter_name)
    return "array" in get_allowed_types(schema, offered_tools.schemas.get(tool_name, {}))


def convert_by_schema(text: str, schema: object, root: Mapping[str, Any], offered_tools: ToolSchemas) -> Any:
    """Convert an untyped text to a value that a schema allows.

    The first rule that applies decides:
    - If the schema does not restrict the type, the value is the text, or with `guess_untyped` its JSON value.
    - If an enum or constant contains the text, with or without outer white space, that string is the value.
    - If any string is allowed, the value is the text, or None for `null` if the schema allows null.
    - If the text is JSON or a Python literal of an allowed type or value, that is the value; otherwise the text is. A
      whole float such as 2.0 becomes an integer if integers are allowed and other numbers are not.

    Args:
        text: the text as the model wrote it.
        schema: the schema of the value.
        root: the tool's whole schema, in which references are resolved.
        offered_tools: the schemas of all tools, of which only the setting `guess_untyped` is used.
    """
    allowed_values = _get_allowed_values(schema, root)
    allowed_types = allowed_values.all_types
    if not allowed_types:
        return _guess_value(text) if offered_tools.guess_untyped else text
    stripped_text = text.strip()
    if text in allowed_values.listed_values or stripped_text in allowed_values.listed_values:
        return text if text in allowed_values.listed_values else stripped_text
    if "string" in allowed_values.types:
        return None if stripped_text == "null" and "null" in allowed_types else text
    try:
        parsed_value = read_value(text)
    except InvalidJsonError:
        return text
    for listed_value in allowed_values.listed_values:
        if isinstance(listed_value, bool) == isinstance(parsed_value, bool) and listed_value == parsed_value:
            return listed_value
    return _convert_to_types(parsed_value, allowed_values.types if "string" in allowed_types else allowed_types, text)


def get_allowed_types(schema: object, root: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema inside of `root` allows.

    The set is empty if the schema does not restrict them.
    """
    return _get_allowed_values(schema, root).all_types


def get_json_type_of_word(word: str) -> str:
    """Return the JSON type for a type name such as `int64`, `Dict` or `list[str]`.

    The result is "" for `any`, and `string` for an unknown name.
    """
    match = _FIRST_WORD.match(word.strip().lower())
    return _TYPE_BY_WORD.get(match.group(), "string") if match else "string"


def group_by_key(
    keyed_occurrences: Iterable[tuple[str, Occurrence]],
    get_value: Callable[[str, Occurrence], Any],
    get_items: Callable[[str, Occurrence], Sequence[Any]],
    allows_list: Callable[[str], bool],
    deviation_codes: set[str],
) -> dict[str, Any]:
    """Return values by key.

    The values of a repeated key become a list if a list is allowed for it. Otherwise the last value counts.

    Args:
        keyed_occurrences: pairs of a key and one of its occurrences, in the order of the text.
        get_value: returns the value of one occurrence.
        get_items: returns the items that one occurrence adds to a list.
        allows_list: returns whether a key may have a list.
        deviation_codes: receives `parameter_repeated` if a key is repeated and may not have a list.
    """
    occurrences_by_key: dict[str, list[Occurrence]] = {}
    for key, occurrence in keyed_occurrences:
        occurrences_by_key.setdefault(key, []).append(occurrence)
    values: dict[str, Any] = {}
    for key, occurrences in occurrences_by_key.items():
        values[key] = get_value(key, occurrences[-1])
        if len(occurrences) > 1 and allows_list(key):
            values[key] = [item for occurrence in occurrences for item in get_items(key, occurrence)]
        elif len(occurrences) > 1:
            deviation_codes.add("parameter_repeated")
    return values


def find_subschema(schema: object, key: str, root: Mapping[str, Any]) -> object:
    """Return the schema of the property `key`, or of an array's items if the key is "".

    References and unions are followed. A property that is not listed has the schema of `additionalProperties`. The
    result is None if there is no such schema.
    """
    for subschema in iterate_subschemas(schema, root):
        properties = subschema.get("properties")
        other_schema = subschema.get("additionalProperties")
        property_schema = properties.get(key, other_schema) if isinstance(properties, Mapping) else other_schema
        found_schema = property_schema if key else subschema.get("items")
        if isinstance(found_schema, Mapping):
            return found_schema
    return None


def parse_as_types(text: str, type_names: Iterable[str]) -> Any:
    """Return the JSON value or Python literal in `text` if it has one of these types, else the text.

    The names of the types are read as in `get_json_type_of_word`.
    """
    try:
        return _convert_to_types(read_value(text), set(map(get_json_type_of_word, type_names)), text)
    except InvalidJsonError:
        return text


def _convert_to_types(value: Any, types: Collection[str], text: str) -> Any:
    if isinstance(value, float) and "integer" in types and "number" not in types and abs(value) < _MAX_WHOLE_FLOAT:
        return int(value) if value.is_integer() else text
    return value if _has_type(value, types) else text


def _has_type(value: Any, types: Iterable[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    return any(isinstance(value, _PYTHON_TYPES.get(json_type, ())) for json_type in types)


def _guess_value(text: str) -> Any:
    try:
        return read_json(text)
    except InvalidJsonError:
        return text


def _get_allowed_values(schema: object, root: Mapping[str, Any]) -> AllowedValues:
    """Return the values that a schema inside of `root` allows."""
    any_value_types: set[str] = set()
    listed_values: list[Any] = []
    for subschema in iterate_subschemas(schema, root):
        types = {json_type for json_type in map(get_json_type_of_word, _list_type_words(subschema)) if json_type}
        values = [*_get_list(subschema, "enum"), *([subschema["const"]] if "const" in subschema else [])]
        fitting_values = [value for value in values if not types or _has_type(value, types)]
        listed_values += fitting_values
        if not fitting_values:
            any_value_types |= types
        if subschema.get("nullable") is True:
            any_value_types.add("null")
        if not types:
            any_value_types |= {
                implied_type for key, implied_type in (("properties", "object"), ("items", "array")) if key in subschema
            }
    return AllowedValues(frozenset(any_value_types), tuple(listed_values))


def iterate_subschemas(schema: object, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, the schemas that it refers to and the branches of its unions, each object once."""
    subschemas, visited_ids = [schema], set[int]()
    for subschema in subschemas:  # the list grows in the loop
        if isinstance(subschema, Mapping) and id(subschema) not in visited_ids:
            visited_ids.add(id(subschema))
            yield subschema
            subschemas.append(resolve_reference(subschema.get("$ref"), root))
            subschemas += [branch for union_key in _UNION_KEYS for branch in _get_list(subschema, union_key)]


def _list_type_words(schema: Mapping[str, Any]) -> list[str]:
    declared_type = schema.get("type")
    words = declared_type if isinstance(declared_type, list) else [declared_type]
    return [word for word in words if isinstance(word, str)]


def _get_list(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _get_json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    json_types = (json_type for json_type, types in _PYTHON_TYPES.items() if isinstance(value, types))
    return next(json_types, "string")


def resolve_reference(reference: object, root: Mapping[str, Any]) -> object:
    """Return the part of `root` to which a local reference refers; None for any other reference."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    try:
        return follow_reference(root, reference)
    except KeyError:
        return None
