"""Cohere's Command 4: values as nested tags with their type, and an id for each call.

The text is rendered and parsed as by Cohere's own library, melody. The flat tags of earlier versions, in which markup
is escaped, are parsed but not rendered.
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
CALLS, CALLS_END = "<cofl:tool_calls>", "</cofl:tool_calls>"
CALL, CALL_END = "<cofl:tool_call ", "</cofl:tool_call>"
_VALUE, _VALUE_END = "<cofl:value ", "</cofl:value>"
_FLAT_VALUE, _FLAT_VALUE_END = "<cofl:tool_param ", "</cofl:tool_param>"
_TYPES_BY_STRING_FLAG = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}
_QUOTE_ENTITY = {'"': "&quot;"}
_MAX_DEPTH = 64
_ATTRIBUTES = r'(?P<attributes>(?:\s*\w+="[^"]*")*)\s*>'
_HEADING, _VALUE_START = re.compile(_ATTRIBUTES), re.compile(rf"\s*{_VALUE.strip()}{_ATTRIBUTES}")
_VALUE_CLOSER = re.compile(rf"\s*{_VALUE_END}")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class TypedTagReader:
    """A reader of a name and nested value tags of the types raw (text), json, dict and list (of inner values)."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading = _HEADING.match(body)
        attributes = _parse_attributes(heading) if heading else {}
        name = clean_name(attributes.get("name", ""))
        if cut or heading is None or not name:
            return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
        notes: set[str] = set()
        try:
            values, end = _read_values(body, heading.end(), 0, notes)
        except InvalidJsonError:
            return UNREADABLE_BLOCK
        arguments = _group_by_name(values, notes, lambda key: is_list_allowed(name, key, known))
        return (
            UNREADABLE_BLOCK
            if body[end:].strip()
            else ParsedBlock((FoundCall(name, arguments, attributes.get("id", "")),), notes=tuple(notes))
        )


def _parse_attributes(match: re.Match[str]) -> Mapping[str, str]:
    return {key: unescape(value, {"&quot;": '"'}) for key, value in _ATTRIBUTE.findall(match["attributes"])}


def _group_by_name(
    values: Sequence[tuple[str, Any]], notes: set[str], is_list: Callable[[str], bool] = lambda name: False
) -> dict[str, Any]:
    return group_by_key(values, lambda name, value: value, lambda name, value: list_items(value), is_list, notes)


def _read_values(text: str, index: int, depth: int, notes: set[str]) -> tuple[list[tuple[str, Any]], int]:
    """Return the names and values of the tags that begin at `index`, and the index after them.

    Raises:
        InvalidJsonError: a value cannot be read.
    """
    values: list[tuple[str, Any]] = []
    while start_tag := _VALUE_START.match(text, index):
        attributes = _parse_attributes(start_tag)
        value, index = _read_value(attributes.get("type", "raw"), text, start_tag.end(), depth, notes)
        values.append((attributes.get("name", ""), value))
    return values, index


def _read_value(value_type: str, text: str, index: int, depth: int, notes: set[str]) -> tuple[Any, int]:
    if value_type not in ("dict", "list"):
        end = text.find(_VALUE_END, index)
        if end < 0 or text.find(_VALUE, index, end) >= 0:
            raise InvalidJsonError("not_json", "a value has no end")
        return text[index:end] if value_type == "raw" else read_json(text[index:end]), end + len(_VALUE_END)
    inner_values, end = _read_values(text, index, depth + 1, notes) if depth < _MAX_DEPTH else ([], index)
    end_tag = _VALUE_CLOSER.match(text, end)
    if end_tag is None:
        raise InvalidJsonError("not_json", "a value has no end, or is nested too deeply")
    return _group_by_name(inner_values, notes) if value_type == "dict" else [
        value for _, value in inner_values
    ], end_tag.end()


def _render_value(value: object, name: str | None = None) -> str:
    name_attribute = "" if name is None else f'name="{escape(name, _QUOTE_ENTITY)}" '
    if isinstance(value, dict):
        value_type, content = "dict", "".join(_render_value(part, key) for key, part in value.items())
    elif isinstance(value, list):
        value_type, content = "list", "".join(_render_value(part) for part in value)
    else:
        value_type, content = ("raw", value) if isinstance(value, str) else ("json", render_spaced_json(value))
    return f'{_VALUE}{name_attribute}type="{value_type}">{content}{_VALUE_END}'


def _render_call(call: TextCall, index: int) -> str:
    values = "".join(_render_value(value, key) for key, value in call.arguments.items())
    return f'{CALL}id="{call.id or index}" name="{call.name}">{values}{CALL_END}'


def _render_result(call: TextCall, content: str, index: int) -> str:
    """Return a call's result with one item: JSON with the content under the key `content`, with escaped markup."""
    item = (
        f'<cofl:tool_result_item index="0">{escape(render_spaced_json({"content": content}))}</cofl:tool_result_item>'
    )
    return f'<cofl:tool_result id="{call.id}" is_error="false">{item}</cofl:tool_result>'


_FLAT_TAGS = TaggedReader(
    re.compile(r'\s*(?:id="(?P<id>[^"]*)"\s+)?name="(?P<name>[^"]+)"\s*>'),
    re.compile(rf'{_FLAT_VALUE}name="(?P<key>[^"]{{1,256}})"(?: string="(?P<kind>true|false)")?\s*>'),
    _FLAT_VALUE_END,
    kinds=_TYPES_BY_STRING_FLAG,
    escaped=True,
)
COMMAND4 = TextFormat(
    "command4",
    (
        Block(
            CALL,
            FirstMatchReader((TypedTagReader(), _FLAT_TAGS)),
            (CALL_END,),
            (CALL, CALLS_END),
            guard=(_VALUE.strip(), _VALUE_END),
        ),
    ),
    CallLayout(_render_call, CALLS, "", CALLS_END),
    PromptLayout(COHERE.prompt.tools, _render_result, "<cofl:tool_results>", "", "</cofl:tool_results>"),
    dropped=(CALLS, CALLS_END, CALL_END, *TEXT, "<|END_OF_TURN_TOKEN|>"),
    reasoning=COHERE.reasoning,
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r'[^\s<>&"]+', r'[^<>"]*', ("cofl:",), ids=True, bare_keys=True),
)
