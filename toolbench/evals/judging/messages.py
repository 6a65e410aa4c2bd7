"""Plain sentences about the arguments of a call, and access to values by JSON path."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, SchemaError

_PATH_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
_TYPE_NAMES = {
    "object": "an object",
    "array": "an array",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_MAX_SHOWN_CHARACTERS = 60


def describe_schema_error(error: SchemaError, arguments: JsonObject | None, tool: ToolDefinition) -> str:
    """Return the schema error as a sentence, such as `$.ops is an object; state_patch takes an array.`."""
    steps = parse_path(error.path)
    expected = _find_schema(tool.parameters, steps)
    if error.kind == "missing":
        return f"{error.path} is missing; {tool.name} needs it."
    if error.kind == "extra":
        return f"{error.path} is no parameter of {tool.name}."
    value = find_value_at_path(arguments, steps)
    if error.kind == "type":
        return f"{error.path} is {describe_json_type(value)}; {tool.name} takes {_describe_types(expected)}."
    if error.kind == "enum" and "enum" in expected:
        allowed = ", ".join(map(render_short, expected["enum"]))
        return f"{error.path} is {render_short(value)}; {tool.name} takes one of {allowed}."
    return f"{error.path} is {render_short(value)}: {error.message.rstrip('.')}."


def parse_path(path: str) -> tuple[str | int, ...]:
    """Return the steps of a JSON path: `$.ops[0]["a b"].path` becomes ("ops", 0, "a b", "path").

    Raises:
        ValueError: A quoted member name is not a JSON string.
    """
    return tuple(_parse_step(*groups) for groups in _PATH_STEP.findall(path))


def _parse_step(name: str, index: str, quoted: str) -> str | int:
    if index:
        return int(index)
    return str(json.loads(quoted)) if quoted else name


def find_value_at_path(document: Any, steps: Iterable[str | int], default: object = None) -> Any:
    """Return the value to which the steps of a JSON path lead in a document; `default` if there is none."""
    value = document
    for step in steps:
        if isinstance(step, int):
            is_there = isinstance(value, list) and step < len(value)
        else:
            is_there = isinstance(value, dict) and step in value
        if not is_there:
            return default
        value = value[step]
    return value


def describe_json_type(value: Any) -> str:
    """Return the value's JSON type in words, such as `an object`, `a text` or `true or false`."""
    kinds = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return _TYPE_NAMES[kinds.get(type(value), "null")]


def render_short(value: Any) -> str:
    """Return the value as JSON; a longer text than 60 characters is truncated there and ends with `…`."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def _find_schema(schema: Mapping[str, Any], steps: Iterable[str | int]) -> Mapping[str, Any]:
    """Return the schema of the value to which the steps lead; empty if `schema` has none for it."""
    for step in steps:
        child = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        schema = child if isinstance(child, Mapping) else {}
    return schema


def _describe_types(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", "another type")
    return " or ".join(_TYPE_NAMES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
