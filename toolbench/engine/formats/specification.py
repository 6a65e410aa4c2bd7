"""What a format is made of. A family is a value of these types and nothing else."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.types import JsonObject

MAX_HEAD_LENGTH = 64  # characters behind an opener within which a block must begin to show what it is
BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call as a reader found it; `raw` empty means the whole block."""

    name: str
    arguments: JsonObject
    id: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """What a block says. `problem` is call_unreadable or call_cut where something in it was meant as a call and will
    not run; `notes` are codes of what was put up with. `text` and `reasoning` are for blocks that hold such."""

    calls: tuple[FoundCall, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    text: str = ""
    reasoning: str = ""


def drop_unnamed_calls(reading: ParsedBlock) -> ParsedBlock:
    """Return what was read without calls whose names have no letter and no digit, which are unreadable."""
    named = tuple(call for call in reading.calls if any(map(str.isalnum, call.name)))
    return reading if len(named) == len(reading.calls) else replace(reading, calls=named, problem="call_unreadable")


class BlockReader(Protocol):
    """Reads the text between opener and closer. `cut` says that the text ended before the block did."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock: ...


@dataclass(frozen=True, slots=True)
class Block:
    """Text that holds calls.

    It begins with `opener`, behind which (after `skip`) one of `starts` must follow, if there are any. It ends at one
    of `closers`, or before one of `enders`. With `values` its extent is that of the JSON or Python values in it, else
    its text runs to the closer and `guard` encloses values in which a closer is only text.

    A `bare` block has no marker of its own: it counts only when all its names are known. `whole`: only when it is the
    whole answer. `at_line`: only at the beginning of a line. An `inner` opener is the first part of the body. A
    `wrapper` is dropped, and what follows is read on its own. With `closer_optional` a missing closer is no finding.
    An `offered` block is a call only of a tool that is offered, where any are: its markers are ordinary markup.
    A `certain` one is never only spoken of."""

    opener: str
    read: BlockReader
    closers: tuple[str, ...] = ()
    enders: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    skip: re.Pattern[str] = BLANK
    values: bool = False
    many: bool = True
    passed: tuple[str, ...] = ()
    guard: tuple[str, str] | None = None
    bare: bool = False
    whole: bool = False
    at_line: bool = False
    inner: bool = False
    wrapper: bool = False
    offered: bool = False
    certain: bool = False
    closer_optional: bool = False

    def fits(self, head: str, *, complete: bool) -> bool | None:
        """Whether text that begins with `head` is such a block; None while more must be seen."""
        if not self.starts:
            return True
        skipped = self.skip.match(head)
        body = head[skipped.end() if skipped else 0 :]
        if body and body.startswith(self.starts):
            return True
        if not complete and (not body or any(start.startswith(body) for start in self.starts)):
            return None
        return False


@dataclass(frozen=True, slots=True)
class CallLayout:
    """How calls are written: each by `call`, with its place from 0, between the other texts."""

    call: Callable[[TextCall, int], str]
    before: str = ""
    between: str = "\n"
    after: str = ""


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """How a prompt lists tools and gives results back: each by `result`, with its place from 0."""

    tools: Callable[[Sequence[JsonObject]], str]
    result: Callable[[TextCall, str, int], str]
    results_before: str = ""
    results_between: str = "\n"
    results_after: str = ""
    role: str = "tool"


@dataclass(frozen=True, slots=True)
class RoundTripLimits:
    """What a format can write and read back: names and argument keys that match whole, strings without any of
    `never`, at most `calls` calls; `schema` where values need one to get their type back; `ids` where it keeps them;
    `bare_keys` where the rule for keys goes for nested objects too; `again` says of a call whether it is
    read as it was written, where the rest does not tell."""

    name: str = r"\S+"
    key: str = r"(?s).*"
    never: tuple[str, ...] = ()
    calls: int = 1000
    schema: bool = False
    ids: bool = False
    bare_keys: bool = False
    again: Callable[[TextCall, ToolSchemas], bool] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TextFormat:
    """One family's way of writing calls.

    `bare` and `named` make the blocks that need the tools' names: those without any marker, and those where a name goes
    before one. `dropped` are tokens that say nothing by themselves; those that are ordinary markup are dropped only
    beside a call or at the end, and with `careful` all others too. `reasoning` are pairs around reasoning, and
    `thought` the pair that is written, if it is another than the first. `native` says that servers know the format and
    models were trained on it."""

    name: str
    blocks: tuple[Block, ...]
    layout: CallLayout
    prompt: PromptLayout
    dropped: tuple[str, ...] = ()
    reasoning: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    thought: tuple[str, str] | None = None
    bare: Callable[[Sequence[str]], tuple[Block, ...]] = field(default=lambda names: ())
    named: Callable[[Sequence[str]], tuple[Block, ...]] = field(default=lambda names: ())
    holds: RoundTripLimits = RoundTripLimits()
    native: bool = True
    careful: bool = False
