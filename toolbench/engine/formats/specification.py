"""Types of which a text format consists. The format of each model family is a value of these types."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.types import JsonObject

MAX_HEAD_LENGTH = 64  # characters after a start marker that decide which block begins
BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call that a reader found in a text.

    Attributes:
        id: the call's id in the text; "" for none.
        raw: the text of the call; "" if the call is the whole block.
    """

    name: str
    arguments: JsonObject
    id: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """The content of a block.

    Attributes:
        problem: call_unreadable or call_cut if the block contains a call that will not be executed; "" for none.
        notes: codes of deviations that were accepted.
        text: text for the user in the block, if the format has such blocks.
        reasoning: reasoning in the block, if the format has such blocks.
    """

    calls: tuple[FoundCall, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    text: str = ""
    reasoning: str = ""


def drop_unnamed_calls(reading: ParsedBlock) -> ParsedBlock:
    """Return the content without calls whose names have neither a letter nor a digit.

    Such calls count as unreadable.
    """
    named = tuple(call for call in reading.calls if any(map(str.isalnum, call.name)))
    return reading if len(named) == len(reading.calls) else replace(reading, calls=named, problem="call_unreadable")


class BlockReader(Protocol):
    """A reader of the text between the markers of a block.

    `cut` says that the text of the answer ended before the block did.
    """

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """The syntax of a part of the text that contains calls.

    Attributes:
        opener: the start marker.
        read: reads the calls.
        closers: end markers that belong to the block.
        enders: markers of other parts, before which the block ends.
        starts: texts of which one must follow `opener` and `skip`; () if any text may follow.
        skip: text that may stand between `opener` and `starts`.
        values: whether the block ends after its JSON or Python values; otherwise it ends at an end marker.
        many: whether several values may follow one another.
        passed: markers with brackets that may occur before the first value.
        guard: start and end marker of a value, between which end markers of the block are plain text.
        bare: the block has no markers, and counts only if all its names are those of offered tools.
        whole: the block counts only if it is the whole answer.
        at_line: the block counts only at the beginning of a line.
        inner: `opener` is also the first part of the body.
        wrapper: `opener` is dropped, and other blocks may begin after it.
        offered: if tools are offered, the block counts only with their names, because its markers are ordinary markup.
        certain: the start marker always begins a call and is never only mentioned.
        closer_optional: a missing end marker is not a finding.
    """

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
        """Return whether a block of this kind begins with `head`, or None if more text is needed.

        Args:
            head: the beginning of the text after the start marker.
            complete: whether `head` does not get longer.
        """
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
    """The layout of calls in a text.

    Attributes:
        call: writes one call; it gets the position of the call, from 0.
        before: the text before all calls.
        between: the text between two calls.
        after: the text after all calls.
    """

    call: Callable[[TextCall, int], str]
    before: str = ""
    between: str = "\n"
    after: str = ""


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """The layout of tools and results in a prompt.

    Attributes:
        tools: writes the list of tools.
        result: writes one result; it gets the position of the call, from 0.
        results_before: the text before all results.
        results_between: the text between two results.
        results_after: the text after all results.
        role: the role of the message with the results.
    """

    tools: Callable[[Sequence[JsonObject]], str]
    result: Callable[[TextCall, str, int], str]
    results_before: str = ""
    results_between: str = "\n"
    results_after: str = ""
    role: str = "tool"


@dataclass(frozen=True, slots=True)
class RoundTripLimits:
    """The calls that a text format can write and read back.

    Attributes:
        name: a pattern that matches the whole name of the tool.
        key: a pattern that matches the whole key of each argument.
        never: texts that no string may contain.
        calls: the largest number of calls.
        schema: whether values need a schema to get their types back.
        ids: whether the format keeps the ids of calls.
        bare_keys: whether `key` applies to the keys of nested objects, too.
        again: returns whether a call is parsed as it was written; it replaces the check by `schema`. None for no such
            check.
    """

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
    """The syntax in which models of a family write calls.

    Attributes:
        name: the name of the format.
        blocks: the blocks that are parsed.
        layout: the layout in which calls are written.
        prompt: the layout of tools and results in a prompt.
        dropped: tokens that are removed from the text. Ordinary markup is removed only beside a call or at the end.
        reasoning: start and end markers of reasoning.
        thought: the start and end marker written around reasoning; None for the first ones of `reasoning`.
        bare: builds the blocks without markers from the names of the tools.
        named: builds the blocks with a name before their marker from the names of the tools.
        native: whether servers know the format and models were trained on it.
        holds: the calls that the format can write and read back.
        careful: whether all tokens of `dropped` are treated like ordinary markup.
    """

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
