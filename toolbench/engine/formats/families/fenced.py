"""JSON in a code fence, as models write that were only asked for it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import ANY_SHAPE, bare_json
from toolbench.engine.formats.json_calls import JsonCalls
from toolbench.engine.formats.writing import enclosed, json_call, tool_lines

FENCE = "```"
_INFO = re.compile(r"[\w+-]*\s*")


def fenced_json(names: Sequence[str]) -> tuple[Block, ...]:
    """A fence that begins with an object or array."""
    return (Block(FENCE, JsonCalls(ANY_SHAPE), (FENCE,), starts=("{", "["), skip=_INFO, values=True, bare=True),)


def whole_fence(names: Sequence[str]) -> tuple[Block, ...]:
    """The same, but only where it is the whole answer."""
    return tuple(replace(block, whole=True) for block in fenced_json(names))


FENCED_JSON = Format(
    "fenced_json",
    (),
    Layout(json_call("tool", before="```json\n", after="\n```")),
    Prompt(
        tool_lines(
            "You can call these tools:\n",
            "\nTo call a tool, reply with ONLY one fenced block and nothing else:\n```json\n"
            '{"tool": "<tool name>", "arguments": {<arguments object>}}\n```',
        ),
        enclosed("[tool_result name={name} id={id}]\n", ""),
        role="user",
    ),
    bare=lambda names: (*fenced_json(names), *bare_json(names)),
    holds=Holds(name=r"[^\s<|｜]+"),
    native=False,
)
