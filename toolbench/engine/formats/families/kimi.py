"""Kimi K2 (JSON after an id that contains the tool's name) and Kimi K3 (a tag for each argument)."""

import re
from collections.abc import Sequence

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tool_list_writer,
    render_canonical_json,
    render_spaced_json,
    render_tag_value,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader
from toolbench.engine.formats.types import TextCall
from toolbench.engine.types import JsonObject

CALL_BEGIN, ARGUMENTS_MARKER, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
SECTION_BEGIN, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_HEADING = re.compile(
    r"\s*(?P<id>(?:functions\.)?(?P<name>[\w.-]+?)(?P<position>:\d+)?)\s*(?:<\|tool_call_argument_begin\|>\s*)?"
)


def _parse_heading(heading: str) -> tuple[str, str]:
    match = _HEADING.fullmatch(heading)
    if match is None:
        return "", ""
    return match["name"], match["id"] if match["position"] else ""


def build_kimi_id(call: TextCall, index: int) -> str:
    """Return the call's id if it is `functions.NAME:NUMBER`, else an id of this form with the call's position."""
    is_fitting = re.fullmatch(rf"functions\.{re.escape(call.name)}:\d+", call.id)
    return call.id if is_fitting else f"functions.{call.name}:{index}"


def _render_call(call: TextCall, index: int) -> str:
    return f"{CALL_BEGIN}{build_kimi_id(call, index)}{ARGUMENTS_MARKER}{render_spaced_json(call.arguments)}{CALL_END}"


KIMI_K2 = TextFormat(
    "kimi_k2",
    (
        Block(
            CALL_BEGIN,
            NamedJsonReader(_parse_heading),
            (CALL_END,),
            (CALL_BEGIN, SECTION_END),
            ends_after_values=True,
            allows_many_values=False,
        ),
    ),
    CallLayout(_render_call, SECTION_BEGIN, "", SECTION_END),
    PromptLayout(
        build_tool_list_writer("<|im_system|>tool_declare<|im_middle|>", "<|im_end|>"),
        build_enclosed_result_writer("<|im_system|>{name}<|im_middle|>## Return of {id}\n", "<|im_end|>"),
        results_between="",
    ),
    dropped_tokens=(SECTION_BEGIN, SECTION_END, CALL_END, "<|im_end|>"),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r"[\w.-]+", keeps_ids=True),
)

_K3_CALL_START, _K3_CALL_END = "<|open|>call", "<|close|>call<|sep|>"
_K3_VALUE_START, _K3_VALUE_END = "<|open|>argument", "<|close|>argument<|sep|>"
_K3_CALLS_START, _K3_CALLS_END = "<|open|>tools<|sep|>", "<|close|>tools<|sep|>"
REASONING_MARKERS = ("<|open|>think<|sep|>", "<|close|>think<|sep|>")
RESPONSE_MARKERS = ("<|open|>response<|sep|>", "<|close|>response<|sep|>")
_MESSAGE_END_TAG = "<|close|>message<|sep|>"
MESSAGE_END = f"{_MESSAGE_END_TAG}<|end_of_msg|>"
_TYPE_NAMES = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def _escape_attribute(text: str) -> str:
    """Escape `&` and `"` in an attribute's value, as Moonshot's encoder does."""
    return text.replace("&", "&amp;").replace('"', "&quot;")


def _unescape_attribute(attribute: str) -> str:
    return attribute.replace("&quot;", '"').replace("&amp;", "&")


def _render_k3_call(call: TextCall, index: int) -> str:
    values = (
        f'{_K3_VALUE_START} key="{_escape_attribute(key)}" type="{_TYPE_NAMES.get(type(value), "null")}"<|sep|>'
        f"{render_tag_value(value)}{_K3_VALUE_END}"
        for key, value in call.arguments.items()
    )
    heading = f'{_K3_CALL_START} tool="{_escape_attribute(call.name)}" index="{index + 1}"<|sep|>'
    return f"{heading}{''.join(values)}{_K3_CALL_END}"


def _render_k3_tools(tools: Sequence[JsonObject]) -> str:
    """Return the message that declares the tools, as JSON with sorted keys and without spaces."""
    message_start = '<|open|>message role="system" type="tool-declare"<|sep|>'
    definitions = render_canonical_json(list(tools))
    return f"{message_start}# Tools\nThese tools can be called:\n\n```json\n{definitions}\n```{MESSAGE_END}"


def _render_k3_result(call: TextCall, content: str, index: int) -> str:
    heading = f'<|open|>message role="tool" tool="{_escape_attribute(call.name)}" index="{index + 1}"<|sep|>'
    return heading + content + MESSAGE_END


KIMI_K3 = TextFormat(
    "kimi_k3",
    (
        Block(
            _K3_CALL_START,
            TaggedReader(
                re.compile(r'\s*tool="(?P<name>[^"]+)"[^<]*<\|sep\|>'),
                re.compile(r'<\|open\|>argument key="(?P<key>[^"]*)"(?: type="(?P<kind>\w+)")?<\|sep\|>'),
                _K3_VALUE_END,
                decode_attribute=_unescape_attribute,
            ),
            (_K3_CALL_END,),
            (_K3_CALL_START, _K3_CALLS_END),
            value_markers=(_K3_VALUE_START, _K3_VALUE_END),
        ),
    ),
    CallLayout(_render_k3_call, _K3_CALLS_START, "", _K3_CALLS_END),
    PromptLayout(
        _render_k3_tools,
        _render_k3_result,
        results_between="",
    ),
    dropped_tokens=(_K3_CALLS_START, _K3_CALLS_END, *RESPONSE_MARKERS, _MESSAGE_END_TAG, "<|end_of_msg|>"),
    reasoning_markers=(REASONING_MARKERS,),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r"[^\s<|]+", r"[^\s<|]([^<|]*[^\s<|])?", ("<|open|>", "<|close|>")),
)
