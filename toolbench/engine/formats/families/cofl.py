"""Cohere's Command 4: values as nested tags that say what they are, with an id for every call, as Cohere's own renderer
and parser (melody) have them; and the flat tags of its earlier versions, in which markup is escaped, read only."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, unescape

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.coercion import is_list, listed_items, together
from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.cohere import COHERE
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.json_calls import clean_name
from toolbench.engine.formats.tagged_calls import CUT, UNREADABLE, FirstOf, Tagged
from toolbench.engine.formats.values import Known, TextCall
from toolbench.engine.formats.writing import spaced_json
from toolbench.engine.json_text import read_json

TEXT = ("<|START_TEXT|>", "<|END_TEXT|>")
ALL, ALL_END = "<cofl:tool_calls>", "</cofl:tool_calls>"
CALL, CALL_END = "<cofl:tool_call ", "</cofl:tool_call>"
_VALUE, _VALUE_END = "<cofl:value ", "</cofl:value>"
_FLAT, _FLAT_END = "<cofl:tool_param ", "</cofl:tool_param>"
_KINDS = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}
_QUOTE = {'"': "&quot;"}
_DEEPEST = 64
_TOLD = r'(?P<told>(?:\s*\w+="[^"]*")*)\s*>'
_HEADING, _OPENED = re.compile(_TOLD), re.compile(rf"\s*{_VALUE.strip()}{_TOLD}")
_CLOSED = re.compile(rf"\s*{_VALUE_END}")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class TypedTags:
    """Reads a name and values that nest: `raw` is the text itself, `json` JSON, `dict` and `list` hold values."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        heading = _HEADING.match(body)
        told = _attributes(heading) if heading else {}
        name = clean_name(told.get("name", ""))
        if cut or heading is None or not name:
            return CUT if cut else UNREADABLE
        notes: set[str] = set()
        try:
            values, at = _values(body, heading.end(), 0, notes)
        except BadJson:
            return UNREADABLE
        arguments = _by_name(values, notes, lambda key: is_list(name, key, known))
        return (
            UNREADABLE
            if body[at:].strip()
            else Reading((FoundCall(name, arguments, told.get("id", "")),), notes=tuple(notes))
        )


def _attributes(found: re.Match[str]) -> Mapping[str, str]:
    return {key: unescape(value, {"&quot;": '"'}) for key, value in _ATTRIBUTE.findall(found["told"])}


def _by_name(
    values: Sequence[tuple[str, Any]], notes: set[str], lists: Callable[[str], bool] = lambda name: False
) -> dict[str, Any]:
    return together(values, lambda name, value: value, lambda name, value: listed_items(value), lists, notes)


def _values(text: str, at: int, depth: int, notes: set[str]) -> tuple[list[tuple[str, Any]], int]:
    """Names and values from `at` on, and where something else stands. Raises BadJson for what cannot be read."""
    found: list[tuple[str, Any]] = []
    while opened := _OPENED.match(text, at):
        told = _attributes(opened)
        value, at = _value(told.get("type", "raw"), text, opened.end(), depth, notes)
        found.append((told.get("name", ""), value))
    return found, at


def _value(kind: str, text: str, at: int, depth: int, notes: set[str]) -> tuple[Any, int]:
    if kind not in ("dict", "list"):
        end = text.find(_VALUE_END, at)
        if end < 0 or text.find(_VALUE, at, end) >= 0:
            raise BadJson("not_json", "a value has no end")
        return text[at:end] if kind == "raw" else read_json(text[at:end]), end + len(_VALUE_END)
    inside, end = _values(text, at, depth + 1, notes) if depth < _DEEPEST else ([], at)
    closed = _CLOSED.match(text, end)
    if closed is None:
        raise BadJson("not_json", "a value has no end, or is nested too deeply")
    return _by_name(inside, notes) if kind == "dict" else [value for _, value in inside], closed.end()


def _written(value: object, name: str | None = None) -> str:
    named = "" if name is None else f'name="{escape(name, _QUOTE)}" '
    if isinstance(value, dict):
        kind, inside = "dict", "".join(_written(part, key) for key, part in value.items())
    elif isinstance(value, list):
        kind, inside = "list", "".join(_written(part) for part in value)
    else:
        kind, inside = ("raw", value) if isinstance(value, str) else ("json", spaced_json(value))
    return f'{_VALUE}{named}type="{kind}">{inside}{_VALUE_END}'


def _call(call: TextCall, place: int) -> str:
    values = "".join(_written(value, key) for key, value in call.arguments.items())
    return f'{CALL}id="{call.id or place}" name="{call.name}">{values}{CALL_END}'


def _result(call: TextCall, content: str, place: int) -> str:
    """A call's one item: its content under that key, as JSON in which markup is escaped."""
    item = f'<cofl:tool_result_item index="0">{escape(spaced_json({"content": content}))}</cofl:tool_result_item>'
    return f'<cofl:tool_result id="{call.id}" is_error="false">{item}</cofl:tool_result>'


_FLAT_TAGS = Tagged(
    re.compile(r'\s*(?:id="(?P<id>[^"]*)"\s+)?name="(?P<name>[^"]+)"\s*>'),
    re.compile(rf'{_FLAT}name="(?P<key>[^"]{{1,256}})"(?: string="(?P<kind>true|false)")?\s*>'),
    _FLAT_END,
    kinds=_KINDS,
    escaped=True,
)
COMMAND4 = Format(
    "command4",
    (
        Block(
            CALL, FirstOf((TypedTags(), _FLAT_TAGS)), (CALL_END,), (CALL, ALL_END), guard=(_VALUE.strip(), _VALUE_END)
        ),
    ),
    Layout(_call, ALL, "", ALL_END),
    Prompt(COHERE.prompt.tools, _result, "<cofl:tool_results>", "", "</cofl:tool_results>"),
    dropped=(ALL, ALL_END, CALL_END, *TEXT, "<|END_OF_TURN_TOKEN|>"),
    reasoning=COHERE.reasoning,
    bare=bare_json,
    holds=Holds(r'[^\s<>&"]+', r'[^<>"]*', ("cofl:",), ids=True, bare_keys=True),
)
