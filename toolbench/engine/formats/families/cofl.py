"""Cohere's Command 4: values as nested tags with their type, and an id for each call.

They follow Cohere's own renderer and parser (melody). The flat tags of earlier versions, in which markup is escaped,
are parsed and not written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, unescape

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_writers import render_spaced_json
from toolbench.engine.formats.coercion import group_by_key, is_list_allowed, list_items
from toolbench.engine.formats.families.cohere import COHERE
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import clean_name
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    FoundCall,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.tagged_calls import TRUNCATED_BLOCK, UNREADABLE_BLOCK, FirstMatchReader, TaggedReader
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.strict_json import read_json

TEXT = ("<|START_TEXT|>", "<|END_TEXT|>")
ALL, ALL_END = "<cofl:tool_calls>", "</cofl:tool_calls>"
CALL, CALL_END = "<cofl:tool_call ", "</cofl:tool_call>"
_VALUE, _VALUE_END = "<cofl:value ", "</cofl:value>"
_FLAT, _FLAT_END = "<cofl:tool_param ", "</cofl:tool_param>"
_KINDS = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}
_QUOTE = {'"': "&quot;"}
_MAX_DEPTH = 64
_ATTRIBUTES = r'(?P<told>(?:\s*\w+="[^"]*")*)\s*>'
_HEADING, _OPENED = re.compile(_ATTRIBUTES), re.compile(rf"\s*{_VALUE.strip()}{_ATTRIBUTES}")
_CLOSED = re.compile(rf"\s*{_VALUE_END}")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class TypedTagReader:
    """Parses a name and nested values: `raw` is text, `json` is JSON, `dict` and `list` contain values."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading = _HEADING.match(body)
        attributes = _parse_attributes(heading) if heading else {}
        name = clean_name(attributes.get("name", ""))
        if cut or heading is None or not name:
            return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
        notes: set[str] = set()
        try:
            values, at = _read_values(body, heading.end(), 0, notes)
        except InvalidJsonError:
            return UNREADABLE_BLOCK
        arguments = _group_by_name(values, notes, lambda key: is_list_allowed(name, key, known))
        return (
            UNREADABLE_BLOCK
            if body[at:].strip()
            else ParsedBlock((FoundCall(name, arguments, attributes.get("id", "")),), notes=tuple(notes))
        )


def _parse_attributes(found: re.Match[str]) -> Mapping[str, str]:
    return {key: unescape(value, {"&quot;": '"'}) for key, value in _ATTRIBUTE.findall(found["told"])}


def _group_by_name(
    values: Sequence[tuple[str, Any]], notes: set[str], lists: Callable[[str], bool] = lambda name: False
) -> dict[str, Any]:
    return group_by_key(values, lambda name, value: value, lambda name, value: list_items(value), lists, notes)


def _read_values(text: str, at: int, depth: int, notes: set[str]) -> tuple[list[tuple[str, Any]], int]:
    """Return names and values from `at` on, and the position after them.

    Raises:
        InvalidJsonError: a value cannot be read.
    """
    found: list[tuple[str, Any]] = []
    while opened := _OPENED.match(text, at):
        attributes = _parse_attributes(opened)
        value, at = _read_value(attributes.get("type", "raw"), text, opened.end(), depth, notes)
        found.append((attributes.get("name", ""), value))
    return found, at


def _read_value(kind: str, text: str, at: int, depth: int, notes: set[str]) -> tuple[Any, int]:
    if kind not in ("dict", "list"):
        end = text.find(_VALUE_END, at)
        if end < 0 or text.find(_VALUE, at, end) >= 0:
            raise InvalidJsonError("not_json", "a value has no end")
        return text[at:end] if kind == "raw" else read_json(text[at:end]), end + len(_VALUE_END)
    inside, end = _read_values(text, at, depth + 1, notes) if depth < _MAX_DEPTH else ([], at)
    closed = _CLOSED.match(text, end)
    if closed is None:
        raise InvalidJsonError("not_json", "a value has no end, or is nested too deeply")
    return _group_by_name(inside, notes) if kind == "dict" else [value for _, value in inside], closed.end()


def _render_value(value: object, name: str | None = None) -> str:
    named = "" if name is None else f'name="{escape(name, _QUOTE)}" '
    if isinstance(value, dict):
        kind, inside = "dict", "".join(_render_value(part, key) for key, part in value.items())
    elif isinstance(value, list):
        kind, inside = "list", "".join(_render_value(part) for part in value)
    else:
        kind, inside = ("raw", value) if isinstance(value, str) else ("json", render_spaced_json(value))
    return f'{_VALUE}{named}type="{kind}">{inside}{_VALUE_END}'


def _render_call(call: TextCall, place: int) -> str:
    values = "".join(_render_value(value, key) for key, value in call.arguments.items())
    return f'{CALL}id="{call.id or place}" name="{call.name}">{values}{CALL_END}'


def _render_result(call: TextCall, content: str, place: int) -> str:
    """Return the only item of a call's result: its content under that key, as JSON with escaped markup."""
    item = (
        f'<cofl:tool_result_item index="0">{escape(render_spaced_json({"content": content}))}</cofl:tool_result_item>'
    )
    return f'<cofl:tool_result id="{call.id}" is_error="false">{item}</cofl:tool_result>'


_FLAT_TAGS = TaggedReader(
    re.compile(r'\s*(?:id="(?P<id>[^"]*)"\s+)?name="(?P<name>[^"]+)"\s*>'),
    re.compile(rf'{_FLAT}name="(?P<key>[^"]{{1,256}})"(?: string="(?P<kind>true|false)")?\s*>'),
    _FLAT_END,
    kinds=_KINDS,
    escaped=True,
)
COMMAND4 = TextFormat(
    "command4",
    (
        Block(
            CALL,
            FirstMatchReader((TypedTagReader(), _FLAT_TAGS)),
            (CALL_END,),
            (CALL, ALL_END),
            guard=(_VALUE.strip(), _VALUE_END),
        ),
    ),
    CallLayout(_render_call, ALL, "", ALL_END),
    PromptLayout(COHERE.prompt.tools, _render_result, "<cofl:tool_results>", "", "</cofl:tool_results>"),
    dropped=(ALL, ALL_END, CALL_END, *TEXT, "<|END_OF_TURN_TOKEN|>"),
    reasoning=COHERE.reasoning,
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r'[^\s<>&"]+', r'[^<>"]*', ("cofl:",), ids=True, bare_keys=True),
)
