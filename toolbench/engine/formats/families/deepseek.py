"""DeepSeek's text formats: V3 and R1, V3.1, V3.2, V4 and V4.1.

V3 and R1 write the type `function`, a name and fenced JSON; V3.1 writes a name and JSON. Later versions write DSML
tags, such as `<｜DSML｜invoke name="…">` in V3.2 and V4; V4.1 has a space after `｜DSML｜`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_named_json_call_writer,
    build_tool_lines_writer,
    render_tag_value,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TYPES_BY_STRING_FLAG, TaggedReader
from toolbench.engine.formats.types import TextCall
from toolbench.engine.types import JsonObject

# Characters that stand for the bar and for the space in a token. Models write the first of each; some gateways replace
# it by another.
_BAR_SPELLINGS = ("｜", "|")
_SPACE_SPELLINGS = ("▁", "_", " ")
_SEPARATOR_PATTERN = re.compile(r"<[｜|]tool[▁_ ]sep[｜|]>")
_NAME_HEADING = re.compile(r"\s*(?P<name>[\w.:/-]+)\s*(?:```\w*\s*)?")


def _list_spellings(words: str) -> tuple[str, ...]:
    """Return all spellings of a token; the first is the correct one, such as `<｜tool▁sep｜>` for "tool sep"."""
    return tuple(f"<{bar}{words.replace(' ', space)}{bar}>" for bar, space in product(_BAR_SPELLINGS, _SPACE_SPELLINGS))


# Each of these tuples has the spellings of one token.
CALL_BEGIN, CALL_END = _list_spellings("tool call begin"), _list_spellings("tool call end")
SEPARATOR = _list_spellings("tool sep")
CALLS_BEGIN, CALLS_END = _list_spellings("tool calls begin"), _list_spellings("tool calls end")
_END_TOKENS = ("<｜end▁of▁sentence｜>",)


def _parse_heading(heading: str) -> tuple[str, str]:
    """Return the tool's name and "", because the format has no ids.

    V3 writes the name after the separator, V3.1 before it. The name is "" if there is no separator or no name.
    """
    text_before, *after_separator = _SEPARATOR_PATTERN.split(heading, maxsplit=1)
    if not after_separator:
        return "", ""
    match = _NAME_HEADING.match(after_separator[0] if after_separator[0].strip("` \n") else text_before)
    return (match["name"], "") if match else ("", "")


def _build_blocks() -> tuple[Block, ...]:
    end_markers, next_markers = (*(f"```{end}" for end in CALL_END), *CALL_END), (*CALL_BEGIN, *CALLS_END)
    return tuple(
        Block(
            begin,
            NamedJsonReader(_parse_heading),
            end_markers,
            next_markers,
            ends_after_values=True,
            allows_many_values=False,
        )
        for begin in CALL_BEGIN
    )


def _build_tools_writer(instruction: str) -> Callable[[Sequence[JsonObject]], str]:
    return build_tool_lines_writer(
        "## Tools\nThese functions can be called:\n", f"\n\nTo call one, write:\n{instruction}"
    )


_V3_PROMPT = PromptLayout(
    _build_tools_writer(
        f"{CALLS_BEGIN[0]}{CALL_BEGIN[0]}function{SEPARATOR[0]}name\n```json\n{{arguments}}\n```{CALL_END[0]}{CALLS_END[0]}",
    ),
    build_enclosed_result_writer("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    results_before="<｜tool▁outputs▁begin｜>",
    results_after="<｜tool▁outputs▁end｜>",
)
_V31_PROMPT = PromptLayout(
    _build_tools_writer(f"{CALLS_BEGIN[0]}{CALL_BEGIN[0]}name{SEPARATOR[0]}{{arguments}}{CALL_END[0]}{CALLS_END[0]}"),
    _V3_PROMPT.write_result,
    results_between="",
)
DEEPSEEK_V3 = TextFormat(
    "deepseek_v3",
    _build_blocks(),
    CallLayout(
        build_named_json_call_writer(f"{CALL_BEGIN[0]}function{SEPARATOR[0]}", "\n```json\n", f"\n```{CALL_END[0]}"),
        CALLS_BEGIN[0],
        "\n",
        CALLS_END[0],
    ),
    _V3_PROMPT,
    dropped_tokens=(*CALLS_BEGIN, *CALLS_END, *CALL_END, *_END_TOKENS),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
DEEPSEEK_V31 = TextFormat(
    "deepseek_v31",
    _build_blocks(),
    CallLayout(
        build_named_json_call_writer(CALL_BEGIN[0], SEPARATOR[0], CALL_END[0]), CALLS_BEGIN[0], "", CALLS_END[0]
    ),
    _V31_PROMPT,
    dropped_tokens=DEEPSEEK_V3.dropped_tokens,
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)


def _build_tag_beginning(bar: str, slash: str = "", space: str = "") -> str:
    """Return the text before the name of a DSML tag, such as `<｜DSML｜` or, with the slash, `</｜DSML｜`."""
    return f"<{slash}{bar}DSML{bar}{space}"


def _build_invoke_block(bar: str, space: str) -> Block:
    begin, end = _build_tag_beginning(bar, space=space), _build_tag_beginning(bar, "/", space)
    value_start, value_end = f"{begin}parameter", f"{end}parameter>"
    reader = TaggedReader(
        re.compile(r"\s*name=[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>"),
        re.compile(rf"{re.escape(value_start)} name=\"(?P<key>[^\">]*)\"(?: string=\"(?P<kind>true|false)\")?\s*>"),
        value_end,
        types_by_word=TYPES_BY_STRING_FLAG,
    )
    next_markers = (*(f"{end}{word}>" for word in _DSML_WRAPPER_NAMES), f"{begin}invoke")
    return Block(f"{begin}invoke", reader, (f"{end}invoke>",), next_markers, value_markers=(value_start, value_end))


_DSML_WRAPPER_NAMES = ("function_calls", "tool_calls", "calls")
_DSML_BLOCKS = tuple(_build_invoke_block(bar, space) for bar, space in product(_BAR_SPELLINGS, ("", " ")))
_DSML_DROPPED_TOKENS = tuple(
    f"{_build_tag_beginning(bar, slash, space)}{word}>"
    for bar, slash, space, word in product(_BAR_SPELLINGS, ("", "/"), ("", " "), (*_DSML_WRAPPER_NAMES, "invoke"))
)


def _build_dsml_format(name: str, wrapper_name: str, prompt: PromptLayout, space: str = "") -> TextFormat:
    """Return a text format with DSML tags.

    Args:
        name: the name of the format.
        wrapper_name: the name of the tag around all calls.
        prompt: the layout of the prompt; its `write_tools` is not used.
        space: the text between the DSML token and the name of a tag.
    """
    begin, end = _build_tag_beginning("｜", space=space), _build_tag_beginning("｜", "/", space)

    parameter = f'{begin}parameter name="key" string="true|false">value{end}parameter>\n'
    instruction = f'{begin}{wrapper_name}>\n{begin}invoke name="name">\n{parameter}{end}invoke>\n{end}{wrapper_name}>'

    def render_call(call: TextCall, index: int) -> str:
        parameters = (
            f'{begin}parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
            f"{render_tag_value(value)}{end}parameter>\n"
            for key, value in call.arguments.items()
        )
        return f'{begin}invoke name="{call.name}">\n{"".join(parameters)}{end}invoke>'

    return TextFormat(
        name,
        _DSML_BLOCKS,
        CallLayout(render_call, f"{begin}{wrapper_name}>\n", "\n", f"\n{end}{wrapper_name}>"),
        replace(prompt, write_tools=_build_tools_writer(instruction)),
        dropped_tokens=(*_DSML_DROPPED_TOKENS, *_END_TOKENS),
        build_bare_blocks=build_bare_json_blocks,
        round_trip_limits=RoundTripLimits(r"[^\s<>|｜\"']+", r"[^\s\">]+", ("DSML",)),
    )


DEEPSEEK_V32 = _build_dsml_format(
    "deepseek_v32",
    "function_calls",
    PromptLayout(
        _V3_PROMPT.write_tools,
        build_enclosed_result_writer("<result>", "</result>"),
        results_before="<function_results>\n",
        results_after="\n</function_results>",
    ),
)
DEEPSEEK_V4 = _build_dsml_format(
    "deepseek_v4",
    "tool_calls",
    PromptLayout(
        _V3_PROMPT.write_tools,
        build_enclosed_result_writer("<tool_result>", "</tool_result>"),
        results_between="\n\n",
    ),
)
DEEPSEEK_V41 = _build_dsml_format(
    "deepseek_v41",
    "calls",
    DEEPSEEK_V4.prompt,
    space=" ",
)
