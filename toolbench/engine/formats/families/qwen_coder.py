"""Qwen3-Coder, Qwen 3.5, Nemotron 3, MiMo, Step 3.5 and Seed-OSS: a function tag with parameter tags."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tagged_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import END_MARKER, JSON_BLOCK, NAMED_BLOCK, PLAIN_NAME, START_MARKER
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader
from toolbench.engine.types import JsonObject

FUNCTION_START, FUNCTION_END = "<function=", "</function>"
VALUE_START, VALUE_END = "<parameter=", "</parameter>"
FUNCTION_READER = TaggedReader(
    re.compile(r"\s*[\"']?(?P<name>[\w.:/-]+)[\"']?\s*>?"),
    re.compile(r"<parameter=(?P<key>[^>\n]{1,256})>"),
    VALUE_END,
    FUNCTION_END,
    strips_line_breaks=True,
)
_SEED_START_MARKER, _SEED_END_MARKER = "<seed:tool_call>", "</seed:tool_call>"
FUNCTION_BLOCK = Block(
    FUNCTION_START,
    FUNCTION_READER,
    (FUNCTION_END,),
    (END_MARKER, _SEED_END_MARKER, START_MARKER, _SEED_START_MARKER, FUNCTION_START),
    value_markers=(VALUE_START, VALUE_END),
)
_WRAPPER = Block(START_MARKER, FUNCTION_READER, body_starts=(FUNCTION_START,), is_wrapper=True)
_ROUND_TRIP_LIMITS = RoundTripLimits(
    PLAIN_NAME,
    r"[^\s<>=]+",
    (VALUE_START, VALUE_END, FUNCTION_END, START_MARKER, END_MARKER, FUNCTION_START),
    needs_schema=True,
)


def _build_tools_writer(start_marker: str, end_marker: str, value_margin: str) -> Callable[[Sequence[JsonObject]], str]:
    """Return a writer of tools and an example call; `value_margin` is the text before and after a value."""
    value = f"{VALUE_START}key>{value_margin}value{value_margin}{VALUE_END}"
    call = f"{start_marker}\n{FUNCTION_START}name>\n{value}\n{FUNCTION_END}\n{end_marker}"
    return build_tool_lines_writer(
        "# Tools\n\nThese functions can be called:\n<tools>\n", f"\n</tools>\n\nTo call one, write:\n{call}"
    )


def _build_call_layout(start_marker: str, end_marker: str, value_margin: str) -> CallLayout:
    prefix = f"{start_marker}\n{FUNCTION_START}{{name}}>\n"
    value_prefix, value_suffix = f"{VALUE_START}{{key}}>{value_margin}", f"{value_margin}{VALUE_END}\n"
    return CallLayout(build_tagged_call_writer(prefix, value_prefix, value_suffix, f"{FUNCTION_END}\n{end_marker}"))


QWEN3_CODER = TextFormat(
    "qwen3_coder",
    (_WRAPPER, JSON_BLOCK, NAMED_BLOCK, FUNCTION_BLOCK),
    _build_call_layout(START_MARKER, END_MARKER, "\n"),
    PromptLayout(
        _build_tools_writer(START_MARKER, END_MARKER, "\n"),
        build_enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
    ),
    dropped_tokens=(END_MARKER, "<|im_end|>"),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=_ROUND_TRIP_LIMITS,
)
SEED_OSS = TextFormat(
    "seed_oss",
    (replace(FUNCTION_BLOCK, reader=replace(FUNCTION_READER, strips_line_breaks=False)),),
    _build_call_layout(_SEED_START_MARKER, _SEED_END_MARKER, ""),
    PromptLayout(_build_tools_writer(_SEED_START_MARKER, _SEED_END_MARKER, ""), build_enclosed_result_writer("", "")),
    dropped_tokens=(_SEED_START_MARKER, _SEED_END_MARKER, "<seed:eos>"),
    reasoning_markers=(("<seed:think>", "</seed:think>"),),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(
        _ROUND_TRIP_LIMITS.name_pattern,
        _ROUND_TRIP_LIMITS.key_pattern,
        (*_ROUND_TRIP_LIMITS.forbidden_texts, _SEED_START_MARKER, _SEED_END_MARKER),
        needs_schema=True,
    ),
)
