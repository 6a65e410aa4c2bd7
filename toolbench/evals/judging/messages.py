"""What was wrong with a call, said in one plain sentence."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolbench.engine.messages import JsonObject, SchemaError
from toolbench.engine.tools.definitions import ToolDefinition

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
_NAMES = {
    "object": "an object",
    "array": "an array",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_SHOWN = 60


def of_schema_error(error: SchemaError, arguments: JsonObject | None, tool: ToolDefinition) -> str:
    """`$.ops is an object; state_patch takes an array.` The tool's schema says what was expected at the path."""
    steps = path_steps(error.path)
    expected = _schema_at(tool.parameters, steps)
    if error.kind == "missing":
        return f"{error.path} is missing; {tool.name} needs it."
    if error.kind == "extra":
        return f"{error.path} is no parameter of {tool.name}."
    value = value_at(arguments, steps)
    if error.kind == "type":
        return f"{error.path} is {json_type(value)}; {tool.name} takes {_wanted(expected)}."
    if error.kind == "enum" and "enum" in expected:
        return f"{error.path} is {shown(value)}; {tool.name} takes one of {', '.join(map(shown, expected['enum']))}."
    return f"{error.path} is {shown(value)}: {error.message.rstrip('.')}."


def path_steps(path: str) -> tuple[str | int, ...]:
    """The steps of a JSON path: `$.ops[0].path` -> ("ops", 0, "path")."""
    return tuple(_step(*found) for found in _STEP.findall(path))


def _step(name: str, index: str, quoted: str) -> str | int:
    if index:
        return int(index)
    return str(json.loads(quoted)) if quoted else name


def value_at(value: Any, steps: Iterable[str | int]) -> Any:
    """The value at the end of the steps; None where they lead nowhere."""
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def json_type(value: Any) -> str:
    """The value's JSON type with its article: `an object`, `a text`."""
    kinds = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return _NAMES[kinds.get(type(value), "null")]


def shown(value: Any) -> str:
    """The value as short JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _schema_at(schema: Mapping[str, Any], steps: Iterable[str | int]) -> Mapping[str, Any]:
    here = schema
    for step in steps:
        inside = here.get("items") if isinstance(step, int) else here.get("properties", {}).get(step)
        here = inside if isinstance(inside, Mapping) else {}
    return here


def _wanted(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", "something else")
    return " or ".join(_NAMES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
