"""Qwen3-Coder, Qwen 3.5, Nemotron 3, MiMo, Step 3.5 and Seed-OSS: a function tag with parameter tags."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import enclosed_result_writer, tagged_call_writer, tool_lines_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import CLOSER, JSON_BLOCK, NAMED_BLOCK, OPENER, PLAIN_NAME
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader
from toolbench.engine.types import JsonObject

FUNCTION, FUNCTION_END = "<function=", "</function>"
VALUE, VALUE_END = "<parameter=", "</parameter>"
FUNCTION_READER = TaggedReader(
    re.compile(r"\s*[\"']?(?P<name>[\w.:/-]+)[\"']?\s*>?"),
    re.compile(r"<parameter=(?P<key>[^>\n]{1,256})>"),
    VALUE_END,
    FUNCTION_END,
    lines=True,
)
_SEED_OPENER, _SEED_CLOSER = "<seed:tool_call>", "</seed:tool_call>"
FUNCTION_BLOCK = Block(
    FUNCTION,
    FUNCTION_READER,
    (FUNCTION_END,),
    (CLOSER, _SEED_CLOSER, OPENER, _SEED_OPENER, FUNCTION),
    guard=(VALUE, VALUE_END),
)
_WRAPPER = Block(OPENER, FUNCTION_READER, starts=(FUNCTION,), wrapper=True)
_ROUND_TRIP_LIMITS = RoundTripLimits(
    PLAIN_NAME, r"[^\s<>=]+", (VALUE, VALUE_END, FUNCTION_END, OPENER, CLOSER, FUNCTION), schema=True
)


def _build_tools_writer(opener: str, closer: str, margin: str) -> Callable[[Sequence[JsonObject]], str]:
    return tool_lines_writer(
        "# Tools\n\nThese functions can be called:\n<tools>\n",
        f"\n</tools>\n\nTo call one, write:\n{opener}\n{FUNCTION}name>\n{VALUE}key>{margin}value{margin}{VALUE_END}\n"
        f"{FUNCTION_END}\n{closer}",
    )


def _build_call_layout(opener: str, closer: str, margin: str) -> CallLayout:
    before = f"{opener}\n{FUNCTION}{{name}}>\n"
    key, value_end = f"{VALUE}{{key}}>{margin}", f"{margin}{VALUE_END}\n"
    return CallLayout(tagged_call_writer(before, key, value_end, f"{FUNCTION_END}\n{closer}"))


QWEN3_CODER = TextFormat(
    "qwen3_coder",
    (_WRAPPER, JSON_BLOCK, NAMED_BLOCK, FUNCTION_BLOCK),
    _build_call_layout(OPENER, CLOSER, "\n"),
    PromptLayout(
        _build_tools_writer(OPENER, CLOSER, "\n"),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=(CLOSER, "<|im_end|>"),
    bare=build_bare_json_blocks,
    holds=_ROUND_TRIP_LIMITS,
)
SEED_OSS = TextFormat(
    "seed_oss",
    (replace(FUNCTION_BLOCK, read=replace(FUNCTION_READER, lines=False)),),
    _build_call_layout(_SEED_OPENER, _SEED_CLOSER, ""),
    PromptLayout(_build_tools_writer(_SEED_OPENER, _SEED_CLOSER, ""), enclosed_result_writer("", "")),
    dropped=(_SEED_OPENER, _SEED_CLOSER, "<seed:eos>"),
    reasoning=(("<seed:think>", "</seed:think>"),),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(
        _ROUND_TRIP_LIMITS.name,
        _ROUND_TRIP_LIMITS.key,
        (*_ROUND_TRIP_LIMITS.never, _SEED_OPENER, _SEED_CLOSER),
        schema=True,
    ),
)
