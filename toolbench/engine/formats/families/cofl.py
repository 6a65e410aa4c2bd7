"""Cohere's Command 4: `<cofl:…>` tags with an id for each call and a type for each value; values may be nested.

The text is rendered and parsed as Cohere's own library, melody, does it. Calls in flat tags with escaped markup, as
earlier versions write them, are parsed but not rendered.
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
    TRUNCATED_BLOCK,
    UNREADABLE_BLOCK,
    Block,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.tagged_calls import TYPES_BY_STRING_FLAG, FirstMatchReader, TaggedReader
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.strict_json import read_json

TEXT_MARKERS = ("<|START_TEXT|>", "<|END_TEXT|>")
CALLS_START, CALLS_END = "<cofl:tool_calls>", "</cofl:tool_calls>"
CALL_START, CALL_END = "<cofl:tool_call ", "</cofl:tool_call>"
_VALUE_START_TEXT, _VALUE_END = "<cofl:value ", "</cofl:value>"
_FLAT_VALUE_START, _FLAT_VALUE_END = "<cofl:tool_param ", "</cofl:tool_param>"

_QUOTE_ENTITY = {'"': "&quot;"}
_MAX_DEPTH = 64  # nested values of the types dict and list
# The attributes and the end of a start tag, such as ` name="city" type="raw">`.
_ATTRIBUTES = r'(?P<attributes>(?:\s*\w+="[^"]*")*)\s*>'
_CALL_HEADING, _VALUE_START_TAG = re.compile(_ATTRIBUTES), re.compile(rf"\s*{_VALUE_START_TEXT.strip()}{_ATTRIBUTES}")
_VALUE_END_TAG = re.compile(rf"\s*{_VALUE_END}")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class TypedTagReader:
    """A reader of a name and nested value tags.

    A value is of the type `raw` (text), `json`, `dict` or `list`; the last two contain value tags.
    """

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading = _CALL_HEADING.match(body)
        attributes = _parse_attributes(heading) if heading else {}
        name = clean_name(attributes.get("name", ""))
        if is_truncated or heading is None or not name:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        deviation_codes: set[str] = set()
        try:
            values, end = _read_values(body, heading.end(), 0, deviation_codes)
        except InvalidJsonError:
            return UNREADABLE_BLOCK
        arguments = _group_by_name(values, deviation_codes, lambda key: is_list_allowed(name, key, offered_tools))
        if body[end:].strip():
            return UNREADABLE_BLOCK
        call = ParsedCall(name, arguments, attributes.get("id", ""))
        return ParsedBlock((call,), deviation_codes=tuple(deviation_codes))


def _parse_attributes(match: re.Match[str]) -> Mapping[str, str]:
    return {key: unescape(value, {"&quot;": '"'}) for key, value in _ATTRIBUTE.findall(match["attributes"])}


def _group_by_name(
    values: Sequence[tuple[str, Any]],
    deviation_codes: set[str],
    allows_list: Callable[[str], bool] = lambda name: False,
) -> dict[str, Any]:
    return group_by_key(
        values, lambda name, value: value, lambda name, value: list_items(value), allows_list, deviation_codes
    )


def _read_values(text: str, index: int, depth: int, deviation_codes: set[str]) -> tuple[list[tuple[str, Any]], int]:
    """Return pairs of name and value from the tags that begin at `index`, and the index after these tags.

    `depth` is the number of values that contain these tags.

    Raises:
        InvalidJsonError: a value cannot be read.
    """
    values: list[tuple[str, Any]] = []
    while start_tag := _VALUE_START_TAG.match(text, index):
        attributes = _parse_attributes(start_tag)
        value, index = _read_value(attributes.get("type", "raw"), text, start_tag.end(), depth, deviation_codes)
        values.append((attributes.get("name", ""), value))
    return values, index


def _read_value(value_type: str, text: str, index: int, depth: int, deviation_codes: set[str]) -> tuple[Any, int]:
    """Return the value whose start tag ends at `index`, and the index after its end tag.

    Raises:
        InvalidJsonError: the value cannot be read.
    """
    if value_type not in ("dict", "list"):
        end = text.find(_VALUE_END, index)
        if end < 0 or text.find(_VALUE_START_TEXT, index, end) >= 0:
            raise InvalidJsonError("not_json", "a value has no end")
        return text[index:end] if value_type == "raw" else read_json(text[index:end]), end + len(_VALUE_END)
    inner_values, end = _read_values(text, index, depth + 1, deviation_codes) if depth < _MAX_DEPTH else ([], index)
    end_tag = _VALUE_END_TAG.match(text, end)
    if end_tag is None:
        raise InvalidJsonError("not_json", "a value has no end, or is nested too deeply")
    if value_type == "dict":
        return _group_by_name(inner_values, deviation_codes), end_tag.end()
    return [value for _, value in inner_values], end_tag.end()


def _render_value(value: object, name: str | None = None) -> str:
    name_attribute = "" if name is None else f'name="{escape(name, _QUOTE_ENTITY)}" '
    if isinstance(value, dict):
        value_type = "dict"
        content = "".join(_render_value(inner_value, inner_name) for inner_name, inner_value in value.items())
    elif isinstance(value, list):
        value_type, content = "list", "".join(_render_value(inner_value) for inner_value in value)
    else:
        value_type, content = ("raw", value) if isinstance(value, str) else ("json", render_spaced_json(value))
    return f'{_VALUE_START_TEXT}{name_attribute}type="{value_type}">{content}{_VALUE_END}'


def _render_call(call: TextCall, index: int) -> str:
    values = "".join(_render_value(value, key) for key, value in call.arguments.items())
    return f'{CALL_START}id="{call.id or index}" name="{call.name}">{values}{CALL_END}'


def _render_result(call: TextCall, content: str, index: int) -> str:
    """Return a call's result with one item: a JSON object with the key `content`, in which markup is escaped."""
    item = (
        f'<cofl:tool_result_item index="0">{escape(render_spaced_json({"content": content}))}</cofl:tool_result_item>'
    )
    return f'<cofl:tool_result id="{call.id}" is_error="false">{item}</cofl:tool_result>'


_FLAT_TAG_READER = TaggedReader(
    re.compile(r'\s*(?:id="(?P<id>[^"]*)"\s+)?name="(?P<name>[^"]+)"\s*>'),
    re.compile(rf'{_FLAT_VALUE_START}name="(?P<key>[^"]{{1,256}})"(?: string="(?P<kind>true|false)")?\s*>'),
    _FLAT_VALUE_END,
    types_by_word=TYPES_BY_STRING_FLAG,
    is_escaped=True,
)
COMMAND4 = TextFormat(
    "command4",
    (
        Block(
            CALL_START,
            FirstMatchReader((TypedTagReader(), _FLAT_TAG_READER)),
            (CALL_END,),
            (CALL_START, CALLS_END),
            value_markers=(_VALUE_START_TEXT.strip(), _VALUE_END),
        ),
    ),
    CallLayout(_render_call, CALLS_START, "", CALLS_END),
    PromptLayout(COHERE.prompt.write_tools, _render_result, "<cofl:tool_results>", "", "</cofl:tool_results>"),
    dropped_tokens=(CALLS_START, CALLS_END, CALL_END, *TEXT_MARKERS, "<|END_OF_TURN_TOKEN|>"),
    reasoning_markers=COHERE.reasoning_markers,
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r'[^\s<>&"]+', r'[^<>"]*', ("cofl:",), keeps_ids=True, checks_nested_keys=True),
)
