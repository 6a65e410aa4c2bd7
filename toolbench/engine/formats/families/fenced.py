"""JSON in a code fence, as models often write it if they are asked for JSON."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import ANY_CALL_KEYS, build_bare_json_blocks
from toolbench.engine.formats.json_calls import JsonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

FENCE = "```"
_INFO_STRING = re.compile(r"[\w+-]*\s*")


def build_fenced_json_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for a code fence that begins with a JSON object or array.

    It is the same for all `names`: the decoder checks the names of the calls.
    """
    return (
        Block(
            FENCE,
            JsonCallReader(ANY_CALL_KEYS),
            (FENCE,),
            body_starts=("{", "["),
            skipped_pattern=_INFO_STRING,
            ends_after_values=True,
            is_bare=True,
        ),
    )


def build_whole_fence_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the block of `build_fenced_json_blocks`, restricted to a fence that is the whole answer."""
    return tuple(replace(block, must_be_whole_answer=True) for block in build_fenced_json_blocks(names))


FENCED_JSON = TextFormat(
    "fenced_json",
    (),
    CallLayout(build_json_call_writer("tool", prefix="```json\n", suffix="\n```")),
    PromptLayout(
        build_tool_lines_writer(
            "You can call these tools:\n",
            "\nTo call a tool, reply with ONLY one fenced block and nothing else:\n```json\n"
            '{"tool": "<tool name>", "arguments": {<arguments object>}}\n```',
        ),
        build_enclosed_result_writer("[tool_result name={name} id={id}]\n", ""),
    ),
    build_bare_blocks=lambda names: (*build_fenced_json_blocks(names), *build_bare_json_blocks(names)),
    round_trip_limits=RoundTripLimits(name_pattern=r"[^\s<|｜]+"),
    is_native=False,
)
