"""Calls as JSON in a text outside of valid fenced blocks: without a fence, or in a broken block."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.methods.json_in_text import MAX_BLOCKS, JsonBlock, JsonCall, find_blocks, parse_call
from toolbench.engine.repairs import RepairedArguments, repair_arguments
from toolbench.engine.repairs.tokens import find_objects
from toolbench.engine.strict_json import read_json

CALL_MARKERS = (  # start markers of calls in other text formats
    "<tool_call",
    "<function=",
    "<function_call",
    "<|tool_call",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<invoke ",
)

_FENCES = re.compile(r"\A\s*```[a-zA-Z_]*\s*|\s*```\s*\Z")


@dataclass(frozen=True, slots=True)
class RepairedBlock:
    """A block of a text in which repairs made a call of a known tool readable.

    Attributes:
        start: offset of the block in the text; a fence is part of the block.
        end: offset after the block.
        block_text: the text of the block without its fence, before repairs.
    """

    start: int
    end: int
    block_text: str
    call: JsonCall
    repaired_arguments: RepairedArguments


def find_bare_blocks(text: str, names: Collection[str]) -> Iterator[JsonBlock]:
    """Yield the JSON objects among the first 32 outermost `{…}` of a text, with or without a fence.

    No object is yielded if the text has none of the tool names, or one of CALL_MARKERS.
    """
    if not any(name in text for name in names) or any(marker in text for marker in CALL_MARKERS):
        return
    end = 0
    for json_text in find_objects(text)[0][:MAX_BLOCKS]:
        start = text.index(json_text, end)
        end = start + len(json_text)
        try:
            yield JsonBlock(start, end, read_json(json_text), is_fenced=False)
        except InvalidJsonError:
            continue


def find_repairable_block(text: str, names: Collection[str], repairs: Sequence[str]) -> RepairedBlock | None:
    """Return the first broken block in which repairs find a call of a known tool; None if there is none.

    A text without broken blocks is searched as a whole.
    """
    if not repairs or "{" not in text:
        return None
    candidates = [block for block in find_blocks(text) if block.is_broken] or [JsonBlock(0, len(text), is_fenced=False)]
    for block in candidates:
        block_text = _FENCES.sub("", text[block.start : block.end])
        repaired_arguments = repair_arguments(
            block_text, repairs, is_truncated=not (block.is_fenced and block.is_closed)
        )
        call = parse_call(repaired_arguments.value, names) if repaired_arguments else None
        if repaired_arguments and repaired_arguments.repair_names and call:
            return RepairedBlock(block.start, block.end, block_text, call, repaired_arguments)
    return None
