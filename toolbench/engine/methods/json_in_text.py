"""Search of a text for calls: as JSON in any known form, in any text format, or as code such as `name(…)`."""

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

MAX_BLOCKS = 32  # fences, or outermost objects, that are read in one text
MAX_CODE_CALLS = 32  # calls as code whose arguments are read in one text

UNREADABLE_CODES = ("call_cut", "call_unreadable")  # codes of findings about an attempted call that cannot be read

_CALL_CHARACTERS = "<[{("  # a call in any text format has one of these
# Schema that gives names to the positional arguments of a call such as `name(1, 2)`, so that they can be read.
_PLACEHOLDER_SCHEMA: JsonObject = {"properties": {f"value_{position}": {} for position in range(32)}}
_FENCE = re.compile(r"```[a-zA-Z_]*\s*")
# The start of JSON that may be a call: an object, a list of objects, or a list that ends before its first item.
_CALL_START = re.compile(r"\{|\[\s*(?:\{|\Z)")


@light(frozen=True, slots=True)
class JsonCall:
    """A call of a known tool in a text.

    Attributes:
        arguments: the arguments as in the JSON: an object, a text, or another value; None if they are null or missing.
        is_exact: whether the call has its name under `name`, its arguments, if any, under `arguments`, and no wrapper.
    """

    name: str
    arguments: object
    is_exact: bool = True


@light(frozen=True, slots=True)
class JsonBlock:
    """An object or list in a text, as JSON or broken JSON.

    Attributes:
        start: offset of the block in the text; a fence is part of the block.
        end: offset after the block.
        value: the JSON value; None if there is none.
        is_broken: whether it begins like an object or a list of objects and is not JSON.
        is_fenced: whether it is in a fence.
        is_closed: whether its fence is closed; True without a fence.
    """

    start: int
    end: int
    value: Any = None
    is_broken: bool = False
    is_fenced: bool = True
    is_closed: bool = True


def parse_call(value: object, names: Collection[str]) -> JsonCall | None:
    """Return the call of a known tool that a JSON value contains in any known form; None if there is none.

    Only the first item of a list is read. `names` are the names of the known tools.
    """
    if isinstance(value, list):
        return parse_call(value[0], names) if value and isinstance(value[0], dict) else None
    if not isinstance(value, dict):
        return None
    for wrapper_key in WRAPPER_KEYS:
        inner_value = value.get(wrapper_key)
        if isinstance(inner_value, dict | list) and (inner_call := parse_call(inner_value, names)):
            return JsonCall(inner_call.name, inner_call.arguments, is_exact=False)
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is None or value[name_key].strip() not in names:
        return None
    argument_key = next((key for key in ARGUMENT_KEYS if key in value), "arguments")
    is_exact = (name_key, argument_key) == ("name", "arguments")
    return JsonCall(value[name_key].strip(), value.get(argument_key), is_exact)


def find_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield the objects and lists of a text that are in a fence or are the whole text.

    A text that begins like an object or a list of objects, but not with a valid one, is one broken block. Otherwise at
    most the first 32 fences are read: content that begins with a valid object or list is a block, content that only
    begins like an object or a list of objects is a broken block, and other content is ignored.
    """
    text_start = len(text) - len(text.lstrip())
    if text[text_start : text_start + 1] in ("{", "["):
        value_and_end = _read_value_at(text, text_start)
        if value_and_end is None and _CALL_START.match(text, text_start):
            yield JsonBlock(text_start, len(text), is_broken=True, is_fenced=False)
            return
        if value_and_end and not text[value_and_end[1] :].strip():
            yield JsonBlock(text_start, value_and_end[1], value_and_end[0], is_fenced=False)
            return
    search_start = 0
    for _ in range(MAX_BLOCKS):
        fence = _FENCE.search(text, search_start)
        if fence is None:
            return
        block = _find_fenced_value(text, fence.start(), fence.end())
        search_start = block.end
        if block.is_broken or block.value is not None:
            yield block


def _find_fenced_value(text: str, start: int, content_start: int) -> JsonBlock:
    """Return the block of the fence at `start`, whose content begins at `content_start`.

    For content that `find_blocks` ignores, the block has no value and is not broken.
    """
    if text[content_start : content_start + 1] in ("{", "[") and (value_and_end := _read_value_at(text, content_start)):
        value, end = value_and_end
        blank_length = len(text[end:]) - len(text[end:].lstrip())
        is_closed = text.startswith("```", end + blank_length)
        return JsonBlock(start, end + blank_length + 3 if is_closed else end, value, is_closed=is_closed)
    closing_fence = text.find("```", content_start)
    end = closing_fence + 3 if closing_fence >= 0 else len(text)
    return JsonBlock(
        start, end, is_broken=_CALL_START.match(text, content_start) is not None, is_closed=closing_fence >= 0
    )


def _read_value_at(text: str, start: int) -> tuple[Any, int] | None:
    """Return the JSON value at an offset, and the offset after it; None if `read_json_at` refuses it."""
    try:
        return read_json_at(text, start)
    except InvalidJsonError:
        return None


def find_attempted_call(text: str, names: Collection[str]) -> str | None:
    """Return the tool name of a call that the model attempted in its text; None if there is none.

    If the text has only unreadable calls in text formats, the result is the code of the first finding about them: one
    of UNREADABLE_CODES. A call in a text format may have a name that is not in `names`.
    """
    if not any(character in text for character in _CALL_CHARACTERS):
        return None
    parsed_text = parse(text, tools=[{"name": name} for name in names])
    if parsed_text.calls:
        return parsed_text.calls[0].name
    if unread_finding := next((finding for finding in parsed_text.findings if finding.code in UNREADABLE_CODES), None):
        return unread_finding.code
    text, _ = split_text_reasoning(text)
    for block in find_blocks(text):
        call = parse_call(block.value, names)
        if call:
            return call.name
        if block.is_broken and (name := _find_mentioned_tool(text[block.start : block.end], names)):
            return name
    return _find_call_as_code(text, names)


def has_readable_call(text: str, names: Collection[str]) -> bool:
    """Return whether a text has a readable call: of any tool in a text format, or of a known tool as JSON or code.

    `names` are the names of the known tools.
    """
    if parse(text, tools=[{"name": name} for name in names]).calls:
        return True
    if any(parse_call(block.value, names) for block in find_blocks(text)):
        return True
    return any(
        _has_readable_arguments(line, name) for line, name in islice(_iterate_code_calls(text, names), MAX_CODE_CALLS)
    )


def _find_mentioned_tool(text: str, names: Collection[str]) -> str | None:
    return next((name for name in names if f'"{name}"' in text), None)


def _find_call_as_code(text: str, names: Collection[str]) -> str | None:
    """Return the tool name of the first call as code; None if there is none."""
    return next((name for _, name in _iterate_code_calls(text, names)), None)


def _iterate_code_calls(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (call, tool name) for calls such as `name(…)` or `name {…}`: the whole text first, then its lines."""
    stripped_text, known_names = text.strip().strip("[]` \n"), frozenset(names)
    for line in (stripped_text, *(line.strip() for line in stripped_text.splitlines())):
        if line.endswith((")", "}")):
            names_in_line = [line.partition(separator)[0] for separator in ("(", " {") if separator in line]
            yield from ((line, name) for name in names_in_line if name in known_names)


def _has_readable_arguments(line: str, name: str) -> bool:
    """Return whether the arguments can be read: as Python values in `name(…)`, as JSON in `name {…}`."""
    if line.startswith(f"{name}("):
        return bool(parse(f"[{line}]", tools=[{"name": name, "parameters": _PLACEHOLDER_SCHEMA}]).calls)
    try:
        read_json(line.removeprefix(name))
    except InvalidJsonError:
        return False
    return True
