"""JSON in a code fence, as models often write it if they are asked for JSON."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import enclosed_result_writer, json_call_writer, tool_lines_writer
from toolbench.engine.formats.families.generic_json import ANY_CALL_KEYS, build_bare_json_blocks
from toolbench.engine.formats.json_calls import JsonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

FENCE = "```"
_INFO = re.compile(r"[\w+-]*\s*")


def build_fenced_json_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for a code fence that begins with a JSON object or array."""
    return (
        Block(FENCE, JsonCallReader(ANY_CALL_KEYS), (FENCE,), starts=("{", "["), skip=_INFO, values=True, bare=True),
    )


def build_whole_fence_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the block of `build_fenced_json_blocks`, which counts only if it is the whole answer."""
    return tuple(replace(block, whole=True) for block in build_fenced_json_blocks(names))


FENCED_JSON = TextFormat(
    "fenced_json",
    (),
    CallLayout(json_call_writer("tool", before="```json\n", after="\n```")),
    PromptLayout(
        tool_lines_writer(
            "You can call these tools:\n",
            "\nTo call a tool, reply with ONLY one fenced block and nothing else:\n```json\n"
            '{"tool": "<tool name>", "arguments": {<arguments object>}}\n```',
        ),
        enclosed_result_writer("[tool_result name={name} id={id}]\n", ""),
        role="user",
    ),
    bare=lambda names: (*build_fenced_json_blocks(names), *build_bare_json_blocks(names)),
    holds=RoundTripLimits(name=r"[^\s<|｜]+"),
    native=False,
)
