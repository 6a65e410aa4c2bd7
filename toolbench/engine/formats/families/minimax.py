"""MiniMax M2 (invoke tags), MiniMax M1 (JSON lines) and dots (invoke tags)."""

import re
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    enclosed_result_writer,
    json_call_writer,
    tagged_call_writer,
    tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader

INVOKE, INVOKE_END = "<invoke name=", "</invoke>"
VALUE, VALUE_END = "<parameter name=", "</parameter>"
INVOKE_READER = TaggedReader(
    re.compile(r"\s*[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>"),
    re.compile(r"<parameter name=[\"']?(?P<key>[^\"'>\n]{1,256})[\"']?>"),
    VALUE_END,
    INVOKE_END,
)
INVOKE_LIMITS = RoundTripLimits(
    r"[^\s<>|｜\"']+", r"[^\s\"'>]+", (VALUE, VALUE_END, INVOKE, INVOKE_END, "function_calls>"), schema=True
)
_RESULT = enclosed_result_writer("<response>", "</response>")


def build_invoke_block(*wrapper_ends: str) -> Block:
    """Return a block for an invoke tag, which also ends before one of `wrapper_ends`."""
    return Block(INVOKE, INVOKE_READER, (INVOKE_END,), (*wrapper_ends, INVOKE), guard=(VALUE, VALUE_END))


def build_invoke_layout(before: str, after: str) -> CallLayout:
    """Return the layout of calls as invoke tags; `before` and `after` are the texts around all calls."""
    value_start = f'{VALUE}"{{key}}">'
    return CallLayout(
        tagged_call_writer(f'{INVOKE}"{{name}}">\n', value_start, f"{VALUE_END}\n", INVOKE_END), before, "\n", after
    )


def _build_instruction(opener: str, closer: str, value_separator: str) -> str:
    value = f'{VALUE}"key">{value_separator}value{value_separator}{VALUE_END}'
    return f'\n</tools>\n\nTo call one, write:\n{opener}\n{INVOKE}"name">\n{value}\n{INVOKE_END}\n{closer}'


_TOOLS = "# Tools\n\nThese tools can be called:\n<tools>\n"
_M2, _M2_END = "<minimax:tool_call>", "</minimax:tool_call>"
_DOTS, _DOTS_END = "<dots_function_call>", "</dots_function_call>"
MINIMAX_M2 = TextFormat(
    "minimax_m2",
    (build_invoke_block(_M2_END),),
    build_invoke_layout(f"{_M2}\n", f"\n{_M2_END}"),
    PromptLayout(
        tool_lines_writer(_TOOLS, _build_instruction(_M2, _M2_END, ""), flat=True, pair=("<tool>", "</tool>")), _RESULT
    ),
    dropped=(_M2, _M2_END, INVOKE_END, "[e~["),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(INVOKE_LIMITS.name, INVOKE_LIMITS.key, (*INVOKE_LIMITS.never, _M2, _M2_END), schema=True),
)
DOTS = TextFormat(
    "dots",
    (
        Block(
            _DOTS,
            replace(INVOKE_READER, name=re.compile(rf"\s*{INVOKE}{INVOKE_READER.name.pattern}"), lines=True),
            (INVOKE_END,),
            (_DOTS_END,),
            starts=(INVOKE,),
            guard=(VALUE, VALUE_END),
        ),
        replace(build_invoke_block(_DOTS_END), read=replace(INVOKE_READER, lines=True)),
    ),
    CallLayout(
        tagged_call_writer(
            f'{_DOTS}\n{INVOKE}"{{name}}">\n',
            f'{VALUE}"{{key}}">\n',
            f"\n{VALUE_END}\n",
            f"{INVOKE_END}\n{_DOTS_END}",
        )
    ),
    PromptLayout(
        tool_lines_writer(_TOOLS, _build_instruction(_DOTS, _DOTS_END, "\n")),
        enclosed_result_writer("\n<dots_function_response>\n", "\n</dots_function_response>"),
        results_between="",
    ),
    dropped=(_DOTS, _DOTS_END, INVOKE_END, "<|endofassistant|>"),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(INVOKE_LIMITS.name, INVOKE_LIMITS.key, (*INVOKE_LIMITS.never, _DOTS, _DOTS_END), schema=True),
)
MINIMAX_M1 = TextFormat(
    "minimax_m1",
    (PLURAL_BLOCK,),
    CallLayout(json_call_writer(), "<tool_calls>\n", "\n", "\n</tool_calls>"),
    PromptLayout(
        tool_lines_writer(
            _TOOLS,
            '\n</tools>\n\nTo call some, write:\n<tool_calls>\n{"name": <name>, "arguments": <object>}\n</tool_calls>',
        ),
        enclosed_result_writer("tool result: ", "\n\n"),
    ),
    dropped=("</tool_calls>", "<end_of_sentence>"),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(PLAIN_NAME),
)
