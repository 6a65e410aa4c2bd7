"""Calls written as Python calls."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unicodedata import is_normalized

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.coercion import is_list, listed_items, together
from toolbench.engine.formats.definition import FoundCall, Reading
from toolbench.engine.formats.extents import split_arguments, value_end
from toolbench.engine.formats.literals import literal, python_tree
from toolbench.engine.formats.values import Known

_BETWEEN = re.compile(r"[\s,;\[\]]*")
_NAME = re.compile(r"(?P<name>[\w.-]+)\s*\(")
_WORD = re.compile(r"[\w.-]+\s*")
_KEY = re.compile(r"\s*(?P<key>[\w-]+)\s*=(?!=)")
_APART = re.compile(r"[\\#\n\r\ud800-\udfff]")  # what Python reads otherwise, or not at all
_NEXT_KEY = re.compile(r",\s*(?=[\w-]+\s*=)")


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """Reads `f(a=1)`, one or several, in a list or line by line. Values are literals; positional ones get the names of
    the schema, in its order. `suffix` is cut off a name."""

    suffix: str = ""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        whole = None if cut else _read_as_one(body.strip(), self.suffix, known)
        return Reading(whole) if whole else self._read_one_by_one(body, known, cut=cut)

    def _read_one_by_one(self, body: str, known: Known, *, cut: bool) -> Reading:
        """Puts up with what is no Python as a whole: a call that is cut, another that cannot be read."""
        calls: list[FoundCall] = []
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
                calls.append(FoundCall(named["name"].removesuffix(self.suffix), arguments, raw=body[at:end]))
            at = _skipped(body, end)
        return Reading(tuple(calls), problem, tuple(sorted(notes)))


def _read_as_one(body: str, suffix: str, known: Known) -> tuple[FoundCall, ...] | None:
    """The calls of a text that is Python from end to end and says the same read in one go, which is several times
    faster; else None. Comments, escapes, several lines and names that Python would spell otherwise are not for here."""
    if _APART.search(body) or not is_normalized("NFKC", body):
        return None
    source, at, found = body.encode(), 0, []
    try:
        tree = python_tree(body, exact=True)
        for node in tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]:
            end = node.end_col_offset or 0  # in bytes
            raw = source[node.col_offset : end].decode()
            found.append(_call_of(node, raw, suffix, known))
            if not _BETWEEN.fullmatch(source[at : node.col_offset].decode()):
                return None
            at = end
    except BadJson:
        return None
    return tuple(found)


def _call_of(node: ast.expr, raw: str, suffix: str, known: Known) -> FoundCall:
    named = _NAME.match(raw)
    if named is None or not isinstance(node, ast.Call) or not _is_named(node.func, named["name"].split(".")):
        raise BadJson("no_call", "no call of a plain name")
    names = _names(known, named["name"])
    if len(node.args) > len(names) or any(given.arg is None for given in node.keywords):
        raise BadJson("no_name", "a value without a name")
    arguments = {name: literal(value) for name, value in zip(names, node.args, strict=False)}
    arguments |= {str(given.arg): literal(given.value) for given in node.keywords}
    if len(arguments) < len(node.args) + len(node.keywords):
        raise BadJson("repeated_name", "a name that is given twice")
    return FoundCall(named["name"].removesuffix(suffix), arguments, raw=raw)


def _is_named(node: ast.expr, parts: list[str]) -> bool:
    """Whether a node spells the dotted name of these parts."""
    for part in reversed(parts[1:]):
        if not isinstance(node, ast.Attribute) or node.attr != part:
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id == parts[0]


def _names(known: Known, tool: str) -> list[str]:
    properties = known.schemas.get(tool, {}).get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _skipped(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _arguments(text: str, tool: str, known: Known, notes: set[str]) -> dict[str, Any] | None:
    if not text.strip():
        return {}
    try:
        return _by_name(list(_pairs(split_arguments(text), tool, known)), tool, known, notes)
    except BadJson:
        pass
    try:
        arguments = _by_name([_quoted(part) for part in _NEXT_KEY.split(text)], tool, known, notes)
    except BadJson:
        return None
    notes.add("quotes_repaired")
    return arguments


def _by_name(pairs: Sequence[tuple[str, Any]], tool: str, known: Known, notes: set[str]) -> dict[str, Any]:
    lists = partial(is_list, tool, known=known)
    return together(pairs, lambda name, value: value, lambda name, value: listed_items(value), lists, notes)


def _pairs(parts: list[str], tool: str, known: Known) -> Iterator[tuple[str, Any]]:
    names = _names(known, tool)
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
