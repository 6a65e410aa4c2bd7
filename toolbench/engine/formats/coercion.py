"""Values of tags, which carry no type of their own, by the tool's schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.values import Known
from toolbench.engine.json_text import read_json

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
    "string": (str,),
}
_UNIONS = ("anyOf", "oneOf", "allOf")
_HOPS = 16  # references and unions that are followed


def typed_value(text: str, tool: str, name: str, known: Known) -> Any:
    """What `text` means for a tool's parameter: where its schema allows a string, the text itself; else JSON, else a
    Python literal, if that is of an allowed type; else the text. Without a schema see Known."""
    return value_by(text, kinds_of(known.parameter(tool, name), known.schemas.get(tool, {})), known)


def value_by(text: str, kinds: set[str], known: Known) -> Any:
    """The same for the JSON types that a schema allows; none where there is no schema, or it does not say."""
    if not kinds:
        return _guessed(text) if known.guess_untyped else text
    return text if "string" in kinds else of_kinds(text, kinds)


def kinds_of(schema: object, root: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema inside of `root` allows; none where it does not say."""
    return set(_kinds(schema, root, _HOPS))


def part_of(schema: object, key: str, root: Mapping[str, Any]) -> object:
    """The schema of what stands under `key` of an object, or of an array's items where the key is ""; None where
    there is none."""
    waiting, hops = [schema], _HOPS
    while waiting and hops:
        one, hops = waiting.pop(0), hops - 1
        if not isinstance(one, Mapping):
            continue
        properties = one.get("properties")
        named = properties.get(key) if isinstance(properties, Mapping) else None
        found = one.get("items") if not key else named or one.get("additionalProperties")
        if isinstance(found, Mapping):
            return found
        waiting += [_referred(one.get("$ref"), root), *(b for u in _UNIONS for b in _listed(one, u))]
    return None


def of_kinds(text: str, kinds: set[str]) -> Any:
    """The JSON value or Python literal in `text` if it is of one of the JSON types `kinds`; else the text."""
    try:
        value = read_value(text)
    except BadJson:
        return text
    if isinstance(value, bool):
        return value if "boolean" in kinds else text
    return value if any(isinstance(value, _TYPES.get(kind, ())) for kind in kinds) else text


def _guessed(text: str) -> Any:
    try:
        return read_json(text)
    except BadJson:
        return text


def _kinds(schema: object, root: Mapping[str, Any], hops: int) -> Iterator[str]:
    """The names of the JSON types that a schema allows; nothing if it does not say."""
    if not isinstance(schema, Mapping) or hops == 0:
        return
    kind = schema.get("type")
    yield from [kind] if isinstance(kind, str) else [each for each in kind or () if isinstance(each, str)]
    if schema.get("nullable") is True:
        yield "null"
    if not kind:  # listed values cannot widen a type that is named
        yield from (_kind_of(value) for value in _listed(schema, "enum"))
        yield from [_kind_of(schema["const"])] if "const" in schema else []
        yield from (implied for key, implied in (("properties", "object"), ("items", "array")) if key in schema)
    for union in _UNIONS:
        for branch in _listed(schema, union):
            yield from _kinds(branch, root, hops - 1)
    yield from _kinds(_referred(schema.get("$ref"), root), root, hops - 1)


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((kind for kind, types in _TYPES.items() if isinstance(value, types)), "string")


def _referred(reference: object, root: Mapping[str, Any]) -> object:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: object = root
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
