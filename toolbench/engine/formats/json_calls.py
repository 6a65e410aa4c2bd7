"""Readers of calls that are written as JSON."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_extent import find_value_end
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import FoundCall, ParsedBlock
from toolbench.engine.formats.types import ToolSchemas
from toolbench.engine.strict_json import read_json_at

_VALUE_START = re.compile(r"[{\[]")
_SEPARATORS = re.compile(r"[\s,;`]*")
_LEAKED_TOKEN = re.compile(r"<[|｜].*", re.DOTALL)
_LABEL_KEYS = {"type", "id", "index"}  # keys that may stand beside a name without arguments


class BrokenValueError(Exception):
    """A value that cannot be read.

    Attributes:
        cut: whether the value has no end in the text.
    """

    def __init__(self, cut: bool) -> None:
        self.cut = cut
        super().__init__("cut" if cut else "unreadable")


@dataclass(frozen=True, slots=True)
class CallKeys:
    """The keys of a call in a JSON object.

    Attributes:
        names: keys of the tool's name; the first that occurs counts.
        arguments: keys of the arguments.
        ids: keys of the id.
        wrappers: keys of objects or lists that hold the call itself.
    """

    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    ids: tuple[str, ...] = ("id",)
    wrappers: tuple[str, ...] = ("function",)

    def calls(self, value: object) -> Iterator[FoundCall | None]:
        """Yield the calls in a JSON value, and None for each object that is not a call."""
        if isinstance(value, list):
            for item in value:
                yield from self.calls(item) if isinstance(item, dict) else ()
            return
        if not isinstance(value, dict):
            yield None
            return
        wrapper = next((key for key in self.wrappers if isinstance(value.get(key), dict | list)), None)
        if wrapper is not None:
            yield from self.calls(value[wrapper])
        else:
            yield self._call(value)

    def _call(self, value: dict[str, Any]) -> FoundCall | None:
        name_key = next((key for key in self.names if isinstance(value.get(key), str)), None)
        if name_key is None or not clean_name(value[name_key]):
            return None
        key = next((key for key in self.arguments if key in value), None)
        if key is None and value.keys() - _LABEL_KEYS - {name_key, *self.ids}:
            return None
        arguments = parse_object(value[key] if key else {})
        call_id = next((value[key] for key in self.ids if isinstance(value.get(key), str | int)), "")
        return None if arguments is None else FoundCall(clean_name(value[name_key]), arguments, str(call_id))


def clean_name(name: str) -> str:
    """Return a tool's name without leaked tokens and outer white space.

    The result is "" if it has neither a letter nor a digit.
    """
    clean = _LEAKED_TOKEN.sub("", name).strip()
    return clean if any(map(str.isalnum, clean)) else ""


def parse_object(value: object) -> dict[str, Any] | None:
    """Return arguments as an object, or None if they are neither an object nor the text of one.

    None and blank text count as an empty object.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = read_value(value)
        except InvalidJsonError:
            return None
    if value is None or value == "":
        return {}
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class JsonCallReader:
    """A reader of JSON objects and arrays of objects, with any text before them.

    Attributes:
        shape: the keys of a call, which decide which objects are calls.
    """

    shape: CallKeys = field(default_factory=CallKeys)

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        calls: list[FoundCall] = []
        notes: set[str] = set()
        problem = ""
        try:
            for value in read_values(body, notes):
                for call in self.shape.calls(value):
                    if call is None:
                        problem = "call_unreadable"
                    else:
                        calls.append(call)
        except BrokenValueError as broken:
            problem = "call_cut" if cut and broken.cut else "call_unreadable"
        if cut and not calls and not problem:
            problem = "call_cut"
        return ParsedBlock(tuple(calls), problem, tuple(sorted(notes)))


@dataclass(frozen=True, slots=True)
class NamedJsonReader:
    """A reader of JSON arguments after a heading with the tool's name.

    Attributes:
        heading: returns the name and the id in the text before the first bracket; each is "" if it is missing.
        otherwise: reads a block whose heading has no name.
    """

    heading: Callable[[str], tuple[str, str]]
    otherwise: JsonCallReader = field(default_factory=JsonCallReader)

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        value_start = _VALUE_START.search(body)
        heading = body[: value_start.start()] if value_start else body
        name, call_id = self.heading(heading)
        if not name:
            problem = ParsedBlock(problem="call_cut" if cut else "call_unreadable")
            return self.otherwise(body, known, cut=cut) if value_start else problem
        if value_start is None:
            complete = not cut or known.takes_nothing(name)
            return ParsedBlock((FoundCall(name, {}, call_id),)) if complete else ParsedBlock(problem="call_cut")
        notes: set[str] = set()
        try:
            value = next(read_values(body[value_start.start() :], notes))
        except BrokenValueError as broken:
            return ParsedBlock(problem="call_cut" if cut and broken.cut else "call_unreadable")
        arguments = parse_object(value)
        if arguments is None:
            return ParsedBlock(problem="call_unreadable")
        return ParsedBlock((FoundCall(name, arguments, call_id),), notes=tuple(sorted(notes)))


def read_values(text: str, notes: set[str]) -> Iterator[Any]:
    """Yield the objects and arrays that follow one another in `text`, as JSON or as Python literals.

    Text before the first value and after the last one is ignored.

    Args:
        text: the text.
        notes: receives codes of deviations that were accepted.

    Raises:
        BrokenValueError: a value cannot be read.
    """
    value_start = _VALUE_START.search(text)
    index = value_start.start() if value_start else len(text)
    while index < len(text) and text[index] in "{[":
        value, index = _read_value(text, index, notes)
        yield value
        separators = _SEPARATORS.match(text, index)
        index = separators.end() if separators else index


def _read_value(text: str, at: int, notes: set[str]) -> tuple[Any, int]:
    """Return the value that begins at `at` and the index after it; BrokenValueError if it cannot be read."""
    if not notes:  # after a first value that was not JSON, JSON is not tried again: its errors take time
        with suppress(InvalidJsonError):
            return read_json_at(text, at)
    end = _find_value_end(text, at)
    value_text = text[at:end]
    if value_text.startswith("{{") and value_text.endswith("}}"):
        notes.add("doubled_braces")
        value_text = value_text[1:-1]
    try:
        value = read_value(value_text)
    except InvalidJsonError:
        raise BrokenValueError(cut=False) from None
    if "doubled_braces" not in notes:
        notes.add("python_literals")
    return value, end


def _find_value_end(text: str, at: int) -> int:
    end = find_value_end(text, at)
    if end is None:
        raise BrokenValueError(cut=True)
    return end
