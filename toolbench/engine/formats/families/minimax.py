"""MiniMax M2 and dots (invoke tags), and MiniMax M1 (a line of JSON for each call)."""

import re
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_tagged_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader

INVOKE_START, INVOKE_END = "<invoke name=", "</invoke>"
VALUE_START, VALUE_END = "<parameter name=", "</parameter>"
INVOKE_READER = TaggedReader(
    re.compile(r"\s*[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>"),
    re.compile(r"<parameter name=[\"']?(?P<key>[^\"'>\n]{1,256})[\"']?>"),
    VALUE_END,
    INVOKE_END,
)
INVOKE_LIMITS = RoundTripLimits(
    r"[^\s<>|｜\"']+",
    r"[^\s\"'>]+",
    (VALUE_START, VALUE_END, INVOKE_START, INVOKE_END, "function_calls>"),
    needs_schema=True,
)
_RESULT_WRITER = build_enclosed_result_writer("<response>", "</response>")


def build_invoke_block(*wrapper_ends: str) -> Block:
    """Return a block for an invoke tag; it also ends before one of `wrapper_ends`, the end markers of its wrapper."""
    return Block(
        INVOKE_START,
        INVOKE_READER,
        (INVOKE_END,),
        (*wrapper_ends, INVOKE_START),
        value_markers=(VALUE_START, VALUE_END),
    )


def build_invoke_layout(prefix: str, suffix: str) -> CallLayout:
    """Return the layout of calls as invoke tags, with `prefix` before and `suffix` after all calls."""
    value_start = f'{VALUE_START}"{{key}}">'
    return CallLayout(
        build_tagged_call_writer(f'{INVOKE_START}"{{name}}">\n', value_start, f"{VALUE_END}\n", INVOKE_END),
        prefix,
        "\n",
        suffix,
    )


def _build_instruction(start_marker: str, end_marker: str, value_margin: str) -> str:
    """Return the text after the tools, which says how to write a call.

    `value_margin` is the text before and after a value.
    """
    value = f'{VALUE_START}"key">{value_margin}value{value_margin}{VALUE_END}'
    return (
        f'\n</tools>\n\nTo call one, write:\n{start_marker}\n{INVOKE_START}"name">\n{value}\n{INVOKE_END}\n{end_marker}'
    )


_TOOLS_HEADING = "# Tools\n\nThese tools can be called:\n<tools>\n"
_M2_START, _M2_END = "<minimax:tool_call>", "</minimax:tool_call>"
_DOTS_START, _DOTS_END = "<dots_function_call>", "</dots_function_call>"
MINIMAX_M2 = TextFormat(
    "minimax_m2",
    (build_invoke_block(_M2_END),),
    build_invoke_layout(f"{_M2_START}\n", f"\n{_M2_END}"),
    PromptLayout(
        build_tool_lines_writer(
            _TOOLS_HEADING, _build_instruction(_M2_START, _M2_END, ""), is_flat=True, line_frame=("<tool>", "</tool>")
        ),
        _RESULT_WRITER,
    ),
    dropped_tokens=(_M2_START, _M2_END, INVOKE_END, "[e~["),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(
        INVOKE_LIMITS.name_pattern,
        INVOKE_LIMITS.key_pattern,
        (*INVOKE_LIMITS.forbidden_texts, _M2_START, _M2_END),
        needs_schema=True,
    ),
)
DOTS = TextFormat(
    "dots",
    (
        Block(
            _DOTS_START,
            replace(
                INVOKE_READER,
                name_pattern=re.compile(rf"\s*{INVOKE_START}{INVOKE_READER.name_pattern.pattern}"),
                strips_line_breaks=True,
            ),
            (INVOKE_END,),
            (_DOTS_END,),
            body_starts=(INVOKE_START,),
            value_markers=(VALUE_START, VALUE_END),
        ),
        replace(build_invoke_block(_DOTS_END), reader=replace(INVOKE_READER, strips_line_breaks=True)),
    ),
    CallLayout(
        build_tagged_call_writer(
            f'{_DOTS_START}\n{INVOKE_START}"{{name}}">\n',
            f'{VALUE_START}"{{key}}">\n',
            f"\n{VALUE_END}\n",
            f"{INVOKE_END}\n{_DOTS_END}",
        )
    ),
    PromptLayout(
        build_tool_lines_writer(_TOOLS_HEADING, _build_instruction(_DOTS_START, _DOTS_END, "\n")),
        build_enclosed_result_writer("\n<dots_function_response>\n", "\n</dots_function_response>"),
        results_between="",
    ),
    dropped_tokens=(_DOTS_START, _DOTS_END, INVOKE_END, "<|endofassistant|>"),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(
        INVOKE_LIMITS.name_pattern,
        INVOKE_LIMITS.key_pattern,
        (*INVOKE_LIMITS.forbidden_texts, _DOTS_START, _DOTS_END),
        needs_schema=True,
    ),
)
MINIMAX_M1 = TextFormat(
    "minimax_m1",
    (PLURAL_BLOCK,),
    CallLayout(build_json_call_writer(), "<tool_calls>\n", "\n", "\n</tool_calls>"),
    PromptLayout(
        build_tool_lines_writer(
            _TOOLS_HEADING,
            '\n</tools>\n\nTo call some, write:\n<tool_calls>\n{"name": <name>, "arguments": <object>}\n</tool_calls>',
        ),
        build_enclosed_result_writer("tool result: ", "\n\n"),
    ),
    dropped_tokens=("</tool_calls>", "<end_of_sentence>"),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
