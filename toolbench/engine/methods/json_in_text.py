"""Calls in a text as JSON, in all known forms, and whether a text contains a call in any format."""

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats import parse
from toolbench.engine.formats.families.generic_json import ARGUMENT_KEYS, NAME_KEYS, WRAPPER_KEYS
from toolbench.engine.light_dataclass import light
from toolbench.engine.methods.inline_reasoning import split_text_reasoning
from toolbench.engine.strict_json import read_json, read_json_at
from toolbench.engine.types import JsonObject

MAX_BLOCKS = 32  # fenced blocks looked at in one answer
MAX_LINES = 32  # lines that spell a call, of which the arguments are read

UNREADABLE_CODES = ("call_cut", "call_unreadable")  # findings of a call that was meant and cannot be read

_CALL_SIGNS = "<[{("  # one of these stands in a call of any dialect
_PLACEHOLDER_SCHEMA: JsonObject = {
    "properties": {f"value_{place}": {} for place in range(32)}
}  # of values without their names
_FENCE = re.compile(r"```[a-zA-Z_]*\s*")


@light(frozen=True, slots=True)
class JsonCall:
    """A call of a known tool in a text. `exact` is False if its form is not {name, arguments}."""

    name: str
    arguments: object
    exact: bool = True


@light(frozen=True, slots=True)
class JsonBlock:
    """A JSON value in a text.

    Attributes:
        start, end: its position, fence included.
        broken: whether it begins like an object and is not JSON.
        closed: whether its fence is closed.
    """

    start: int
    end: int
    value: Any = None
    broken: bool = False
    fenced: bool = True
    closed: bool = True


def parse_call(value: object, names: Collection[str]) -> JsonCall | None:
    """Return the call of a known tool that a JSON value contains in any known form; None if there is none."""
    if isinstance(value, list):
        return parse_call(value[0], names) if value and isinstance(value[0], dict) else None
    if not isinstance(value, dict):
        return None
    for wrapper in WRAPPER_KEYS:
        inner = value.get(wrapper)
        if isinstance(inner, dict | list) and (found := parse_call(inner, names)):
            return JsonCall(found.name, found.arguments, exact=False)
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is None or value[name_key].strip() not in names:
        return None
    argument_key = next((key for key in ARGUMENT_KEYS if key in value), "arguments")
    exact = (name_key, argument_key) == ("name", "arguments")
    return JsonCall(value[name_key].strip(), value.get(argument_key), exact)


def find_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield the JSON values of a text that stand in a fence or are the whole text.

    Fenced blocks that do not begin like JSON are ignored; at most the first 32 are read.
    """
    bare = len(text) - len(text.lstrip())
    if text[bare : bare + 1] in ("{", "["):
        found = _read_value_at(text, bare)
        whole = found is None or not text[found[1] :].strip()
        if whole:
            value, end = found or (None, len(text))
            yield JsonBlock(bare, end, value, broken=found is None, fenced=False)
            return
    at = 0
    for _ in range(MAX_BLOCKS):
        opened = _FENCE.search(text, at)
        if opened is None:
            return
        block = _find_fenced_value(text, opened.start(), opened.end())
        at = block.end
        if block.broken or block.value is not None:
            yield block


def _find_fenced_value(text: str, start: int, inside: int) -> JsonBlock:
    if text[inside : inside + 1] in ("{", "[") and (found := _read_value_at(text, inside)):
        value, end = found
        tail = len(text[end:]) - len(text[end:].lstrip())
        closed = text.startswith("```", end + tail)
        return JsonBlock(start, end + tail + 3 if closed else end, value, closed=closed)
    closing = text.find("```", inside)
    end = closing + 3 if closing >= 0 else len(text)
    return JsonBlock(start, end, broken=text[inside : inside + 1] in ("{", "["), closed=closing >= 0)


def _read_value_at(text: str, start: int) -> tuple[Any, int] | None:
    """Return the JSON value at a position and its end; None if it is not JSON or nested too deeply."""
    try:
        return read_json_at(text, start)
    except InvalidJsonError:
        return None


def find_unread_call(text: str, names: Collection[str]) -> str | None:
    """Return what in a text looks like an intended call; None for ordinary text.

    It is the tool's name, or the code of an unreadable call in any known format.
    """
    if not any(mark in text for mark in _CALL_SIGNS):
        return None
    parsed = parse(text, tools=[{"name": name} for name in names])
    if parsed.calls:
        return parsed.calls[0].name
    if trouble := next((finding for finding in parsed.findings if finding.code in UNREADABLE_CODES), None):
        return trouble.code
    text, _ = split_text_reasoning(text)
    for block in find_blocks(text):
        found = parse_call(block.value, names)
        if found:
            return found.name
        if block.broken and (name := _find_mentioned_tool(text[block.start : block.end], names)):
            return name
    return _find_call_as_code(text, names)


def has_readable_call(text: str, names: Collection[str]) -> bool:
    """Return whether a text contains a readable call of one of these tools, in any format or form."""
    if parse(text, tools=[{"name": name} for name in names]).calls:
        return True
    if any(parse_call(block.value, names) for block in find_blocks(text)):
        return True
    return any(
        _has_readable_arguments(line, name) for line, name in islice(_iterate_code_calls(text, names), MAX_LINES)
    )


def _find_mentioned_tool(text: str, names: Collection[str]) -> str | None:
    return next((name for name in names if f'"{name}"' in text), None)


def _find_call_as_code(text: str, names: Collection[str]) -> str | None:
    """Return the tool of a call such as `name(…)` or `name {…}`; None if there is none.

    The call is a line or the whole text.
    """
    return next((name for _, name in _iterate_code_calls(text, names)), None)


def _iterate_code_calls(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each line that is such a call with the tool's name, the whole text first."""
    whole = text.strip().strip("[]` \n")
    lines = (whole, *(line.strip() for line in whole.splitlines()))
    yield from ((line, name) for line in lines for name in names if _is_code_call(line, name))


def _is_code_call(line: str, name: str) -> bool:
    return line.startswith((f"{name}(", f"{name} {{")) and line.endswith((")", "}"))


def _has_readable_arguments(line: str, name: str) -> bool:
    """Return whether the arguments of such a line can be read: Python values, or a JSON object."""
    if line.startswith(f"{name}("):
        return bool(parse(f"[{line}]", tools=[{"name": name, "parameters": _PLACEHOLDER_SCHEMA}]).calls)
    try:
        read_json(line.removeprefix(name))
    except InvalidJsonError:
        return False
    return True
