"""MiniCPM 5: a function tag with param tags; values with markup or line breaks are in CDATA sections."""

import re
from xml.sax.saxutils import unescape

from toolbench.engine.formats.call_writers import enclosed_result_writer, render_tag_value, tool_lines_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader
from toolbench.engine.formats.types import TextCall

FUNCTION, FUNCTION_END = "<function name=", "</function>"
PARAM, PARAM_END = "<param name=", "</param>"
CDATA, CDATA_END = "<![CDATA[", "]]>"
_ENTITIES = {"&quot;": '"', "&apos;": "'"}


def _read_text(value: str) -> str:
    inner = value.strip()
    if inner.startswith(CDATA) and inner.endswith(CDATA_END):
        return inner[len(CDATA) : -len(CDATA_END)]
    return unescape(value, _ENTITIES)


def _render_value(value: object) -> str:
    text = render_tag_value(value)
    return f"{CDATA}{text}{CDATA_END}" if any(character in text for character in "<&\n") else text


def _render_call(call: TextCall, index: int) -> str:
    values = (f'{PARAM}"{key}">{_render_value(value)}{PARAM_END}' for key, value in call.arguments.items())
    return f'{FUNCTION}"{call.name}">{"".join(values)}{FUNCTION_END}'


MINICPM5 = TextFormat(
    "minicpm5",
    (
        Block(
            FUNCTION,
            TaggedReader(
                re.compile(r"\s*[\"'](?P<name>[^\"'<>\s]+)[\"']\s*>"),
                re.compile(r"<param name=[\"'](?P<key>[^\"'<>\n]{1,256})[\"']\s*>"),
                PARAM_END,
                FUNCTION_END,
                plain=_read_text,
            ),
            (FUNCTION_END,),
            (FUNCTION,),
            guard=(PARAM, PARAM_END),
            offered=True,
        ),
    ),
    CallLayout(_render_call),
    PromptLayout(
        tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            f'\n</tools>\n\nTo call one, write:\n{FUNCTION}"name">{PARAM}"key">value{PARAM_END}{FUNCTION_END}\n'
            f"A value with <, & or a line break in it stands in {CDATA}...{CDATA_END}.",
        ),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=("<|im_end|>", FUNCTION_END),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(
        r"[^\s<>|｜\"']+", r"[^\s\"'<>]+", (PARAM, PARAM_END, FUNCTION, FUNCTION_END, CDATA, CDATA_END), schema=True
    ),
)
