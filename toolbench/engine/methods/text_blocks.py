"""Calls in a text outside of valid fenced blocks: bare between words, or in a broken block."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.methods.json_in_text import MAX_BLOCKS, JsonBlock, JsonCall, find_blocks, parse_call
from toolbench.engine.repairs import RepairedArguments, repair
from toolbench.engine.repairs.tokens import find_objects
from toolbench.engine.strict_json import read_json

CALL_MARKERS = (
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
    """A call of a known tool that repairs found in `written`, from `start` to `end` of a text, fence included."""

    start: int
    end: int
    written: str
    call: JsonCall
    repaired: RepairedArguments


def find_bare_blocks(text: str, names: Collection[str]) -> Iterator[JsonBlock]:
    """Yield the first 32 JSON objects of a text outside of fences.

    There are none if the text names no tool or has markers of other formats.
    """
    if not any(name in text for name in names) or any(marker in text for marker in CALL_MARKERS):
        return
    at = 0
    for written in find_objects(text)[0][:MAX_BLOCKS]:
        start = text.index(written, at)
        at = start + len(written)
        try:
            yield JsonBlock(start, at, read_json(written), fenced=False)
        except InvalidJsonError:
            continue


def find_repairable_block(text: str, names: Collection[str], repairs: Sequence[str]) -> RepairedBlock | None:
    """Return the first broken block, or else the whole text, in which repairs find a call of a known tool."""
    if not repairs or "{" not in text:
        return None
    broken = [block for block in find_blocks(text) if block.broken] or [JsonBlock(0, len(text), fenced=False)]
    for block in broken:
        written = _FENCES.sub("", text[block.start : block.end])
        found = repair(written, repairs, cut=not (block.fenced and block.closed))
        call = parse_call(found.value, names) if found else None
        if found and call:
            return RepairedBlock(block.start, block.end, written, call, found)
    return None
