"""Calls written as Python calls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.definition import Found, Reading
from toolbench.engine.formats.extents import split_arguments, value_end
from toolbench.engine.formats.literals import literal, python_tree
from toolbench.engine.formats.values import Known

_BETWEEN = re.compile(r"[\s,;\[\]]*")
_NAME = re.compile(r"(?P<name>[\w.-]+)\s*\(")
_WORD = re.compile(r"[\w.-]+\s*")
_KEY = re.compile(r"\s*(?P<key>[\w-]+)\s*=(?!=)")
_NEXT_KEY = re.compile(r",\s*(?=[\w-]+\s*=)")


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """Reads `f(a=1)`, one or several, in a list or line by line. Values are literals; positional ones get the names of
    the schema, in its order. `suffix` is cut off a name."""

    suffix: str = ""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        calls: list[Found] = []
        notes: set[str] = set()
        at = _skipped(body, 0)
        problem = "call_cut" if cut and at == len(body) else ""
        while at < len(body):
            named = _NAME.match(body, at)
            end = value_end(body, named.end() - 1) if named else None
            if named and end is None and not cut:
                end = body.rfind(")") + 1
            if named is None or not end or end <= named.end() - 1:
                begun = named is not None or _WORD.fullmatch(body, at) is not None
                problem = "call_cut" if cut and begun else "call_unreadable"
                break
            arguments = _arguments(body[named.end() : end - 1], named["name"], known, notes)
            if arguments is None:
                problem = "call_unreadable"
            else:
                calls.append(Found(named["name"].removesuffix(self.suffix), arguments, raw=body[at:end]))
            at = _skipped(body, end)
        return Reading(tuple(calls), problem, tuple(sorted(notes)))


def _skipped(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _arguments(text: str, tool: str, known: Known, notes: set[str]) -> dict[str, Any] | None:
    if not text.strip():
        return {}
    try:
        return dict(_pairs(split_arguments(text), tool, known))
    except BadJson:
        pass
    try:
        arguments = dict(_quoted(part) for part in _NEXT_KEY.split(text))
    except BadJson:
        return None
    notes.add("quotes_repaired")
    return arguments


def _pairs(parts: list[str], tool: str, known: Known) -> Iterator[tuple[str, Any]]:
    properties = known.schemas.get(tool, {}).get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    if not parts[-1].strip():
        parts = parts[:-1]
    for place, part in enumerate(parts):
        named = _KEY.match(part)
        if named is None and place >= len(names):
            raise BadJson("no_name", "a value without a name")
        key = named["key"] if named else names[place]
        yield key, literal(python_tree(part[named.end() if named else 0 :].strip()))


def _quoted(part: str) -> tuple[str, Any]:
    """A key and its value, which ends with its last quotation mark."""
    named = _KEY.match(part)
    if named is None:
        raise BadJson("no_name", "a value without a name")
    value = part[named.end() :].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return named["key"], value[1:-1]
    return named["key"], literal(python_tree(value))
