"""MiniCPM 5: a function tag with param tags; values with markup or line breaks are in CDATA sections."""

import re
from xml.sax.saxutils import unescape

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tool_lines_writer,
    render_tag_value,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader
from toolbench.engine.formats.types import TextCall

FUNCTION_START, FUNCTION_END = "<function name=", "</function>"
PARAM_START, PARAM_END = "<param name=", "</param>"
CDATA_START, CDATA_END = "<![CDATA[", "]]>"
_ENTITIES = {"&quot;": '"', "&apos;": "'"}


def _decode_value(value: str) -> str:
    stripped_value = value.strip()
    if stripped_value.startswith(CDATA_START) and stripped_value.endswith(CDATA_END):
        return stripped_value[len(CDATA_START) : -len(CDATA_END)]
    return unescape(value, _ENTITIES)


def _render_value(value: object) -> str:
    text = render_tag_value(value)
    return f"{CDATA_START}{text}{CDATA_END}" if any(character in text for character in "<&\n") else text


def _render_call(call: TextCall, index: int) -> str:
    values = (f'{PARAM_START}"{key}">{_render_value(value)}{PARAM_END}' for key, value in call.arguments.items())
    return f'{FUNCTION_START}"{call.name}">{"".join(values)}{FUNCTION_END}'


MINICPM5 = TextFormat(
    "minicpm5",
    (
        Block(
            FUNCTION_START,
            TaggedReader(
                re.compile(r"\s*[\"'](?P<name>[^\"'<>\s]+)[\"']\s*>"),
                re.compile(r"<param name=[\"'](?P<key>[^\"'<>\n]{1,256})[\"']\s*>"),
                PARAM_END,
                FUNCTION_END,
                decode_value=_decode_value,
            ),
            (FUNCTION_END,),
            (FUNCTION_START,),
            value_markers=(PARAM_START, PARAM_END),
            needs_offered_name=True,
        ),
    ),
    CallLayout(_render_call),
    PromptLayout(
        build_tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            f'\n</tools>\n\nTo call one, write:\n{FUNCTION_START}"name">{PARAM_START}"key">value{PARAM_END}'
            f"{FUNCTION_END}\nA value with <, & or a line break in it stands in {CDATA_START}...{CDATA_END}.",
        ),
        build_enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
    ),
    dropped_tokens=("<|im_end|>", FUNCTION_END),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(
        r"[^\s<>|｜\"']+",
        r"[^\s\"'<>]+",
        (PARAM_START, PARAM_END, FUNCTION_START, FUNCTION_END, CDATA_START, CDATA_END),
        needs_schema=True,
    ),
)
