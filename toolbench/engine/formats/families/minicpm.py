"""MiniCPM 5: a function tag with param tags, and markup in CDATA."""

import re
from xml.sax.saxutils import unescape

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.values import TextCall
from toolbench.engine.formats.writing import enclosed, spelled, tool_lines

FUNCTION, FUNCTION_END = "<function name=", "</function>"
PARAM, PARAM_END = "<param name=", "</param>"
CDATA, CDATA_END = "<![CDATA[", "]]>"
_ENTITIES = {"&quot;": '"', "&apos;": "'"}


def _plain(value: str) -> str:
    inner = value.strip()
    if inner.startswith(CDATA) and inner.endswith(CDATA_END):
        return inner[len(CDATA) : -len(CDATA_END)]
    return unescape(value, _ENTITIES)


def _written(value: object) -> str:
    text = spelled(value)
    return f"{CDATA}{text}{CDATA_END}" if any(sign in text for sign in "<&\n") else text


def _call(call: TextCall, place: int) -> str:
    values = (f'{PARAM}"{key}">{_written(value)}{PARAM_END}' for key, value in call.arguments.items())
    return f'{FUNCTION}"{call.name}">{"".join(values)}{FUNCTION_END}'


MINICPM5 = Format(
    "minicpm5",
    (
        Block(
            FUNCTION,
            Tagged(
                re.compile(r"\s*[\"'](?P<name>[^\"'<>\s]+)[\"']\s*>"),
                re.compile(r"<param name=[\"'](?P<key>[^\"'<>\n]{1,256})[\"']\s*>"),
                PARAM_END,
                FUNCTION_END,
                plain=_plain,
            ),
            (FUNCTION_END,),
            (FUNCTION,),
            guard=(PARAM, PARAM_END),
            offered=True,
        ),
    ),
    Layout(_call),
    Prompt(
        tool_lines(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            f'\n</tools>\n\nTo call one, write:\n{FUNCTION}"name">{PARAM}"key">value{PARAM_END}{FUNCTION_END}\n'
            f"A value with <, & or a line break in it stands in {CDATA}...{CDATA_END}.",
        ),
        enclosed("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=("<|im_end|>", FUNCTION_END),
    bare=bare_json,
    holds=Holds(
        r"[^\s<>|｜\"']+", r"[^\s\"'<>]+", (PARAM, PARAM_END, FUNCTION, FUNCTION_END, CDATA, CDATA_END), schema=True
    ),
)
