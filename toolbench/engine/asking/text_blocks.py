"""Where else a call may stand in a text than in a good fenced block: bare between words, or in a broken block."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from toolbench.engine.asking.written_calls import BLOCKS, Block, WrittenCall, blocks_in, call_in
from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import read_json
from toolbench.engine.repairs import Repaired, repair
from toolbench.engine.repairs.tokens import objects_in

MARKERS = ("<tool_call", "<function=", "<function_call", "<|tool_call", "[TOOL_CALLS]", "<|python_tag|>", "<invoke ")

_FENCES = re.compile(r"\A\s*```[a-zA-Z_]*\s*|\s*```\s*\Z")


@dataclass(frozen=True, slots=True)
class MendedBlock:
    """A call of a known tool read by repairs from what was `written` between `start` and `end` of a text, fence
    included."""

    start: int
    end: int
    written: str
    call: WrittenCall
    repaired: Repaired


def bare_blocks(text: str, names: Collection[str]) -> Iterator[Block]:
    """The JSON objects of a text that stand in no fence, where it mentions a tool and has no markers of another form of
    calls; at most the first 32."""
    if not any(name in text for name in names) or any(marker in text for marker in MARKERS):
        return
    at = 0
    for written in objects_in(text)[0][:BLOCKS]:
        start = text.index(written, at)
        at = start + len(written)
        try:
            yield Block(start, at, read_json(written), fenced=False)
        except BadJson:
            continue


def mend_block(text: str, names: Collection[str], repairs: Sequence[str]) -> MendedBlock | None:
    """The first broken block, or failing such the whole text, in which the repairs find a call of a known tool."""
    if not repairs or "{" not in text:
        return None
    broken = [block for block in blocks_in(text) if block.broken] or [Block(0, len(text), fenced=False)]
    for block in broken:
        written = _FENCES.sub("", text[block.start : block.end])
        found = repair(written, repairs, cut=not (block.fenced and block.closed))
        call = call_in(found.value, names) if found else None
        if found and call:
            return MendedBlock(block.start, block.end, written, call, found)
    return None
