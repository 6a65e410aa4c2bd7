"""Readers of calls that are written as JSON."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_extent import find_value_end
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import TRUNCATED_BLOCK, UNREADABLE_BLOCK, ParsedBlock, ParsedCall
from toolbench.engine.formats.types import ToolSchemas
from toolbench.engine.strict_json import read_json_at

_VALUE_START = re.compile(r"[{\[]")
_SEPARATORS = re.compile(r"[\s,;`]*")
_LEAKED_TOKEN = re.compile(r"<[|｜].*", re.DOTALL)
_LABEL_KEYS = {"type", "id", "index"}  # keys that may stand beside a name without arguments


class BrokenValueError(Exception):
    """A value that cannot be read.

    Attributes:
        is_truncated: whether the value has no end in the text.
    """

    def __init__(self, is_truncated: bool) -> None:
        self.is_truncated = is_truncated
        super().__init__("cut" if is_truncated else "unreadable")


@dataclass(frozen=True, slots=True)
class CallKeys:
    """The keys of a call in a JSON object. Keys of one kind are tried in their order.

    Attributes:
        name_keys: keys of the tool's name; the first with a string counts.
        arguments_keys: keys of the arguments; the first that occurs counts.
        id_keys: keys of the id; the first with a string or an integer counts.
        wrapper_keys: keys of an object or a list that holds the call itself; the first with such a value counts.
    """

    name_keys: tuple[str, ...] = ("name",)
    arguments_keys: tuple[str, ...] = ("arguments", "parameters")
    id_keys: tuple[str, ...] = ("id",)
    wrapper_keys: tuple[str, ...] = ("function",)

    def iterate_calls(self, value: object) -> Iterator[ParsedCall | None]:
        """Yield the calls in a JSON value, and None for a value that is no call.

        Array items that are not objects are skipped.
        """
        if isinstance(value, list):
            for item in value:
                yield from self.iterate_calls(item) if isinstance(item, dict) else ()
            return
        if not isinstance(value, dict):
            yield None
            return
        wrapper_key = next((key for key in self.wrapper_keys if isinstance(value.get(key), dict | list)), None)
        if wrapper_key is not None:
            yield from self.iterate_calls(value[wrapper_key])
        else:
            yield self._parse_call(value)

    def _parse_call(self, value: dict[str, Any]) -> ParsedCall | None:
        """Return the call in an object.

        The result is None if the object has no name, or if its arguments cannot be read. It is also None if the object
        has no arguments, but other keys than those of the name, the id and labels.
        """
        name_key = next((key for key in self.name_keys if isinstance(value.get(key), str)), None)
        if name_key is None or not clean_name(value[name_key]):
            return None
        arguments_key = next((key for key in self.arguments_keys if key in value), None)
        if arguments_key is None and value.keys() - _LABEL_KEYS - {name_key, *self.id_keys}:
            return None
        arguments = parse_object(value[arguments_key] if arguments_key else {})
        call_id = next((value[key] for key in self.id_keys if type(value.get(key)) in (str, int)), "")
        return None if arguments is None else ParsedCall(clean_name(value[name_key]), arguments, str(call_id))


def clean_name(name: str) -> str:
    """Return the part of a tool's name before a leaked special token such as `<|channel|>`, trimmed.

    The result is "" if it has neither a letter nor a digit.
    """
    cleaned_name = _LEAKED_TOKEN.sub("", name).strip()
    return cleaned_name if any(map(str.isalnum, cleaned_name)) else ""


def parse_object(value: object) -> dict[str, Any] | None:
    """Return arguments as an object, or None if they are neither an object nor the text of one.

    None, blank text, and text that is read as null or as an empty string count as an empty object.
    """
    if isinstance(value, str):
        try:
            value = read_value(value) if value.strip() else None
        except InvalidJsonError:
            return None
    if value is None or value == "":
        return {}
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class JsonCallReader:
    """A reader of JSON objects and arrays of objects, with any text before them.

    Attributes:
        call_keys: finds the calls in a value by their keys.
    """

    call_keys: CallKeys = field(default_factory=CallKeys)

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        calls: list[ParsedCall] = []
        deviation_codes: set[str] = set()
        problem_code = ""
        try:
            for value in read_values(body, deviation_codes):
                for call in self.call_keys.iterate_calls(value):
                    if call is None:
                        problem_code = "call_unreadable"
                    else:
                        calls.append(call)
        except BrokenValueError as error:
            problem_code = "call_cut" if is_truncated and error.is_truncated else "call_unreadable"
        if is_truncated and not calls and not problem_code:
            problem_code = "call_cut"
        return ParsedBlock(tuple(calls), problem_code, tuple(sorted(deviation_codes)))


@dataclass(frozen=True, slots=True)
class NamedJsonReader:
    """A reader of JSON arguments after a heading with the tool's name.

    Attributes:
        parse_heading: returns the name and the id in the text before the first bracket; each is "" if it is missing.
        fallback_reader: reads a block with JSON but without a name in its heading.
    """

    parse_heading: Callable[[str], tuple[str, str]]
    fallback_reader: JsonCallReader = field(default_factory=JsonCallReader)

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        value_start = _VALUE_START.search(body)
        heading = body[: value_start.start()] if value_start else body
        name, call_id = self.parse_heading(heading)
        if not name and value_start:
            return self.fallback_reader(body, offered_tools, is_truncated=is_truncated)
        if not name:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        if value_start is None:
            is_complete = not is_truncated or offered_tools.has_no_parameters(name)
            return ParsedBlock((ParsedCall(name, {}, call_id),)) if is_complete else TRUNCATED_BLOCK
        deviation_codes: set[str] = set()
        try:
            value = next(read_values(body[value_start.start() :], deviation_codes))
        except BrokenValueError as error:
            return TRUNCATED_BLOCK if is_truncated and error.is_truncated else UNREADABLE_BLOCK
        arguments = parse_object(value)
        if arguments is None:
            return UNREADABLE_BLOCK
        return ParsedBlock((ParsedCall(name, arguments, call_id),), deviation_codes=tuple(sorted(deviation_codes)))


def read_values(text: str, deviation_codes: set[str]) -> Iterator[Any]:
    """Yield the objects and arrays that follow one another in `text`, as JSON or as Python literals.

    Text before the first value and after the last one is ignored.

    Args:
        text: the values, which white space, commas, semicolons or backticks may separate.
        deviation_codes: receives codes of deviations that were accepted.

    Raises:
        BrokenValueError: a value cannot be read.
    """
    value_start = _VALUE_START.search(text)
    index = value_start.start() if value_start else len(text)
    while index < len(text) and text[index] in "{[":
        value, index = _read_value(text, index, deviation_codes)
        yield value
        separators = _SEPARATORS.match(text, index)
        index = separators.end() if separators else index


def _read_value(text: str, index: int, deviation_codes: set[str]) -> tuple[Any, int]:
    """Return the value that begins at `index` and the index after it.

    Raises:
        BrokenValueError: the value cannot be read.
    """
    # A failed attempt takes time in proportion to `index`, so none is made after a value that is not JSON.
    if not deviation_codes:
        with suppress(InvalidJsonError):
            return read_json_at(text, index)
    end = _get_value_end(text, index)
    value_text = text[index:end]
    if value_text.startswith("{{") and value_text.endswith("}}"):
        deviation_codes.add("doubled_braces")
        value_text = value_text[1:-1]
    try:
        value = read_value(value_text)
    except InvalidJsonError:
        raise BrokenValueError(is_truncated=False) from None
    if "doubled_braces" not in deviation_codes:
        deviation_codes.add("python_literals")
    return value, end


def _get_value_end(text: str, index: int) -> int:
    """Return the index after the value that begins at `index`.

    Raises:
        BrokenValueError: the value has no end.
    """
    end = find_value_end(text, index)
    if end is None:
        raise BrokenValueError(is_truncated=True)
    return end
