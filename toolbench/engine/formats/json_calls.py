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
_LABELS = {"type", "id", "index"}  # keys that may stand beside a name without arguments


class BrokenValueError(Exception):
    """A value that cannot be read.

    Attributes:
        cut: whether the value has no end.
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
        if key is None and value.keys() - _LABELS - {name_key, *self.ids}:
            return None
        arguments = as_object(value[key] if key else {})
        given = next((value[key] for key in self.ids if isinstance(value.get(key), str | int)), "")
        return None if arguments is None else FoundCall(clean_name(value[name_key]), arguments, str(given))


def clean_name(name: str) -> str:
    """Return a tool's name without leaked tokens and outer white space.

    The result is "" if it has neither a letter nor a digit.
    """
    clean = _LEAKED_TOKEN.sub("", name).strip()
    return clean if any(map(str.isalnum, clean)) else ""


def as_object(value: object) -> dict[str, Any] | None:
    """Return arguments as an object, or None if they are not one.

    None and "" are an empty object; a text is parsed once.
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
        shape: which objects are calls.
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
    """A reader of arguments in JSON behind a heading with the tool's name.

    Attributes:
        heading: returns the name and the id in the text before the first bracket; "" for none.
        otherwise: reads a block whose heading has no name.
    """

    heading: Callable[[str], tuple[str, str]]
    otherwise: JsonCallReader = field(default_factory=JsonCallReader)

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        begin = _VALUE_START.search(body)
        heading = body[: begin.start()] if begin else body
        name, made = self.heading(heading)
        if not name:
            missing = ParsedBlock(problem="call_cut" if cut else "call_unreadable")
            return self.otherwise(body, known, cut=cut) if begin else missing
        if begin is None:
            complete = not cut or known.takes_nothing(name)
            return ParsedBlock((FoundCall(name, {}, made),)) if complete else ParsedBlock(problem="call_cut")
        notes: set[str] = set()
        try:
            value = next(read_values(body[begin.start() :], notes))
        except BrokenValueError as broken:
            return ParsedBlock(problem="call_cut" if cut and broken.cut else "call_unreadable")
        arguments = as_object(value)
        if arguments is None:
            return ParsedBlock(problem="call_unreadable")
        return ParsedBlock((FoundCall(name, arguments, made),), notes=tuple(sorted(notes)))


def read_values(text: str, notes: set[str]) -> Iterator[Any]:
    """Yield the JSON values that follow one another in `text`.

    Text before the first value and behind the last one is ignored.

    Args:
        text: the text.
        notes: receives codes of deviations that were accepted.

    Raises:
        BrokenValueError: a value cannot be read.
    """
    begin = _VALUE_START.search(text)
    at = begin.start() if begin else len(text)
    while at < len(text) and text[at] in "{[":
        value, at = _read_value(text, at, notes)
        yield value
        trivia = _SEPARATORS.match(text, at)
        at = trivia.end() if trivia else at


def _read_value(text: str, at: int, notes: set[str]) -> tuple[Any, int]:
    if not notes:  # after a first value that was not JSON, JSON is not tried again: its errors take time
        with suppress(InvalidJsonError):
            return read_json_at(text, at)
    end = _find_value_end(text, at)
    written = text[at:end]
    if written.startswith("{{") and written.endswith("}}"):
        notes.add("doubled_braces")
        written = written[1:-1]
    try:
        value = read_value(written)
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
