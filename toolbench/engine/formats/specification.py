"""The types that make up a text format. The format of each model family is a value of these types."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.types import JsonObject

# Characters after a start marker that decide which block begins, plus the length of the longest text in `body_starts`.
MIN_NEXT_TEXT_LENGTH = 64
WHITE_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call that a reader found in a text.

    Attributes:
        id: the call's id in the text; "" for none.
        raw_text: the text of this call alone; "" if the reader does not separate it from the rest of the block.
    """

    name: str
    arguments: JsonObject
    id: str = ""
    raw_text: str = ""


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """The content of a block.

    Attributes:
        problem_code: call_unreadable or call_cut if the block contains a call that will not be executed; "" for none.
        deviation_codes: codes of deviations that were accepted.
        text: text for the user in the block; "" for none.
        reasoning: reasoning in the block; "" for none.
    """

    calls: tuple[ParsedCall, ...] = ()
    problem_code: str = ""
    deviation_codes: tuple[str, ...] = ()
    text: str = ""
    reasoning: str = ""


UNREADABLE_BLOCK, TRUNCATED_BLOCK = ParsedBlock(problem_code="call_unreadable"), ParsedBlock(problem_code="call_cut")


def drop_calls_without_name(parsed_block: ParsedBlock) -> ParsedBlock:
    """Return the content without calls whose names have neither a letter nor a digit.

    Such calls count as unreadable.
    """
    named_calls = tuple(call for call in parsed_block.calls if any(map(str.isalnum, call.name)))
    return (
        parsed_block
        if len(named_calls) == len(parsed_block.calls)
        else replace(parsed_block, calls=named_calls, problem_code="call_unreadable")
    )


class BlockReader(Protocol):
    """A reader of the text between the markers of a block.

    `offered_tools` has the schemas by which values without a type are converted. `is_truncated` says whether the answer
    ended before the block did.
    """

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """The syntax of a part of the text that contains calls.

    Attributes:
        end_markers: end markers that belong to the block.
        next_markers: markers of other parts, before which the block ends.
        body_starts: one of these texts must follow `start_marker` and `skipped_pattern`; () if any text may follow.
        skipped_pattern: text that may stand between `start_marker` and the text of `body_starts`.
        ends_after_values: whether the block ends after its JSON or Python values; otherwise it ends with an end marker
            or before a next marker.
        allows_many_values: whether several values may follow one another.
        skipped_markers: markers that contain brackets, and may occur before the first value.
        value_markers: start and end marker of a value, between which `end_markers` and `next_markers` are plain text.
        is_bare: the block has no markers of its own (`start_marker` is a bracket, a code fence or a tool's name), and
            counts only if all its names are those of offered tools.
        must_be_whole_answer: the block counts only if it is the whole answer.
        must_begin_line: the block counts only at the beginning of a line or after a call.
        has_start_marker_in_body: `start_marker` is also the first part of the body.
        is_wrapper: `start_marker` stands before other blocks and is dropped before a call; `reader` is never called.
        needs_offered_name: if tools are offered, the block counts only if it names one of them, because its markers are
            ordinary markup.
        is_certain: the start marker always begins a call and is never only mentioned.
        is_end_marker_optional: a missing end marker is not a finding, and both markers without a body are text.
    """

    start_marker: str
    reader: BlockReader
    end_markers: tuple[str, ...] = ()
    next_markers: tuple[str, ...] = ()
    body_starts: tuple[str, ...] = ()
    skipped_pattern: re.Pattern[str] = WHITE_SPACE
    ends_after_values: bool = False
    allows_many_values: bool = True
    skipped_markers: tuple[str, ...] = ()
    value_markers: tuple[str, str] | None = None
    is_bare: bool = False
    must_be_whole_answer: bool = False
    must_begin_line: bool = False
    has_start_marker_in_body: bool = False
    is_wrapper: bool = False
    needs_offered_name: bool = False
    is_certain: bool = False
    is_end_marker_optional: bool = False

    def may_begin_with(self, next_text: str, *, is_all_text: bool) -> bool | None:
        """Return whether a block begins if `next_text` follows its start marker; None if more text is needed.

        Args:
            next_text: the beginning of the text after the start marker.
            is_all_text: whether `next_text` is complete; otherwise a later call gets more of it.
        """
        if not self.body_starts:
            return True
        skipped = self.skipped_pattern.match(next_text)
        body = next_text[skipped.end() if skipped else 0 :]
        if body and body.startswith(self.body_starts):
            return True
        if not is_all_text and (not body or any(start.startswith(body) for start in self.body_starts)):
            return None
        return False


@dataclass(frozen=True, slots=True)
class CallLayout:
    """The layout of calls in a text.

    Attributes:
        write_call: writes one call; it gets the position of the call in the answer, from 0.
        before_calls: the text before all calls.
        between_calls: the text between two calls.
        after_calls: the text after all calls.
    """

    write_call: Callable[[TextCall, int], str]
    before_calls: str = ""
    between_calls: str = "\n"
    after_calls: str = ""


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """The layout of tools and results in a prompt.

    Attributes:
        write_tools: writes the list of tools.
        write_result: writes one result; it gets the call, the text of the result, and its position among the results
            that are written together, from 0.
        results_before: the text before all results.
        results_between: the text between two results.
        results_after: the text after all results.
    """

    write_tools: Callable[[Sequence[JsonObject]], str]
    write_result: Callable[[TextCall, str, int], str]
    results_before: str = ""
    results_between: str = "\n"
    results_after: str = ""


@dataclass(frozen=True, slots=True)
class RoundTripLimits:
    """Limits of the calls that a text format can write and read back unchanged.

    Attributes:
        name_pattern: a pattern that matches the whole name of the tool.
        key_pattern: a pattern that matches the whole key of each argument.
        forbidden_texts: texts that no string and no key in the arguments may contain.
        needs_schema: whether values need a schema to get their types back.
        keeps_ids: whether the format keeps the ids of calls.
        checks_nested_keys: whether `key_pattern` applies to the keys of nested objects, too.
        is_call_safe: returns whether a call is parsed as it was written; None to check the values as `needs_schema`
            requires.
    """

    name_pattern: str = r"\S+"
    key_pattern: str = r"(?s).*"
    forbidden_texts: tuple[str, ...] = ()
    needs_schema: bool = False
    keeps_ids: bool = False
    checks_nested_keys: bool = False
    is_call_safe: Callable[[TextCall, ToolSchemas], bool] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TextFormat:
    """The syntax in which models of a family write calls.

    Attributes:
        name: the name of the format.
        blocks: the blocks that are parsed.
        layout: the layout in which calls are written.
        prompt: the layout of tools and results in a prompt.
        dropped_tokens: tokens that are removed from the text. A token that looks like ordinary markup, such as
            `</tool_call>`, is removed only beside a call or at the end.
        reasoning_markers: start and end markers of reasoning.
        written_reasoning_markers: the start and end marker written around reasoning; None for the first ones of
            `reasoning_markers`.
        build_bare_blocks: builds the blocks with `is_bare` from the names of the offered tools; it is not called if no
            tools are offered.
        build_named_blocks: builds the blocks whose start markers contain a tool's name, from the tools' names.
        is_native: whether servers know the format and models were trained on it.
        round_trip_limits: the calls that the format can write and read back.
        treats_tokens_as_markup: whether all `dropped_tokens` are treated like ordinary markup, and a block with
            `needs_offered_name` never counts if no tools are offered.
    """

    name: str
    blocks: tuple[Block, ...]
    layout: CallLayout
    prompt: PromptLayout
    dropped_tokens: tuple[str, ...] = ()
    reasoning_markers: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    written_reasoning_markers: tuple[str, str] | None = None
    build_bare_blocks: Callable[[Sequence[str]], tuple[Block, ...]] = field(default=lambda names: ())
    build_named_blocks: Callable[[Sequence[str]], tuple[Block, ...]] = field(default=lambda names: ())
    round_trip_limits: RoundTripLimits = RoundTripLimits()
    is_native: bool = True
    treats_tokens_as_markup: bool = False
