"""State of the parsing of one answer: its text, reasoning, calls and findings so far."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.engine.formats.mentions import is_control_token, is_leaked_at_end, is_markup_token
from toolbench.engine.formats.specification import ParsedCall
from toolbench.engine.formats.types import DecoderEvent, ParsedText, TextCall
from toolbench.engine.types import Finding

_SEPARATORS = re.compile(r"[\s;,]*")
_FINDING_MESSAGES = {
    "call_cut": "The text ends inside a call; it was not executed.",
    "call_unreadable": "A call cannot be read; it was not executed.",
    "call_in_reasoning": "A call is in the reasoning; it was not executed.",
    "call_unoffered": "A call of a tool that was not offered is part of a sentence; it was not executed.",
    "closer_missing": "A call has no end marker; it was read nevertheless.",
    "reasoning_unclosed": "The reasoning has no end marker.",
    "python_literals": "The arguments are written as Python values instead of JSON.",
    "quotes_repaired": "Quotation marks inside a value were not escaped.",
    "doubled_braces": "The call is in doubled braces.",
    "name_repaired": "The tool's name contained other tokens, or was before the start marker.",
    "parameter_repeated": "A parameter occurs more than once in a call and is no list; its last value counts.",
    "delimiter_missing": "A string in a call lacks a delimiter; its bounds follow from the text around it.",
    "tag_missing": "A tag of a call is missing; the call was read nevertheless.",
    "arguments_wrapped": "All arguments are written as JSON in one parameter.",
    "attributes": "The arguments are written as attributes.",
}


@dataclass(frozen=True, slots=True)
class BlockCalls:
    """The calls of one block.

    Attributes:
        raw_text: the text of the block.
        finding_codes: codes of deviations that were accepted, and of a problem with the block.
        is_unoffered: whether the calls name no offered tool; the block is then text if the answer has words.
        text_code: the code of the finding if `is_unoffered` turns the block into text; "" for no finding.
    """

    raw_text: str
    calls: Sequence[ParsedCall]
    finding_codes: Sequence[str] = ()
    is_unoffered: bool = False
    text_code: str = ""


class ParseState:
    """Collector of the text, reasoning, calls and findings of one answer.

    Its methods are called in the order of the answer's text.

    Args:
        treats_tokens_as_markup: as in TextFormat.

    Attributes:
        new_events: the events since the last `fetch_events`.
        findings: the findings so far, at most one of each code.
    """

    def __init__(self, *, treats_tokens_as_markup: bool = False) -> None:
        self._treats_tokens_as_markup = treats_tokens_as_markup
        # Tokens that may be text, and the white space after them; the bool says whether a part is a token.
        self._pending_parts: list[tuple[str, bool]] = []
        self._has_reasoning_ended = False  # also after empty reasoning
        # Whether words came before an end marker of reasoning without a start marker. If text or a call follows, the
        # words are reasoning.
        self._may_be_reasoning = False
        self._last_character = ""  # of the text since the last call or reasoning
        self.new_events: list[DecoderEvent] = []
        self.findings: list[Finding] = []
        self._text_parts: list[str] = []
        self._written_parts: list[str] = []  # text and calls as written, needed if all of it turns out to be reasoning
        self._separators = ""  # white space, commas and semicolons after a call, text only if other text follows
        self._follows_call = False
        self._has_line_ended = True
        self._is_text_blank = True
        self._reasoning_parts: list[str] = []
        self._calls: list[TextCall] = []
        self._proposed_calls: tuple[str, Sequence[ParsedCall]] | None = None  # the text of a block and its calls
        # Blocks held back because their calls may be text, and the tokens and separators around them; the bool says
        # whether a part is a token.
        self._held_parts: list[BlockCalls | tuple[str, bool]] = []

    @property
    def is_blank(self) -> bool:
        """Whether the answer has no call and no words so far; reasoning and pending tokens do not count."""
        return self._is_text_blank and not self._calls and not self._proposed_calls and not self._held_parts

    @property
    def has_words(self) -> bool:
        """Whether the answer has words or proposed calls so far; words that may be reasoning do not count."""
        return self._proposed_calls is not None or not (self._is_text_blank or self._may_be_reasoning)

    @property
    def has_reasoning(self) -> bool:
        """Whether the answer has reasoning so far, also empty reasoning."""
        return self._has_reasoning_ended or bool(self._reasoning_parts)

    @property
    def previous_character(self) -> str:
        """The last character of the text since the last call or reasoning; "" if there is none."""
        return self._pending_parts[-1][0][-1:] if self._pending_parts else self._last_character

    def is_within_line(self) -> bool:
        """Return whether words stand before this position on its line."""
        return not self.is_blank and not self.is_at_line_start()

    def is_at_line_start(self) -> bool:
        """Return whether a line begins at this position; a line also begins after a call."""
        return self._follows_call or self._has_line_ended or bool(self._held_parts)

    def add_text(self, text: str) -> None:
        """Add text; separators after calls that are held back are held back too."""
        if not text:
            return
        if self._held_parts:
            if _SEPARATORS.fullmatch(text):
                self._held_parts.append((text, False))
                return
            self._release_held_parts(has_text=True)
        if self._pending_parts:
            self._pending_parts.append((text, False))
            if text.strip():
                self._release_pending_parts(lambda token: True)
            return
        if self._may_be_reasoning and (visible_text := text.lstrip()):
            self._written_parts.append(text[: -len(visible_text)])
            self._turn_into_reasoning()
            text = visible_text
        self._written_parts.append(text)
        self._last_character = text[-1]
        if self._proposed_calls:
            self._separators += text
            if text.strip():
                self._revoke_proposed_calls()
            return
        if self._follows_call and _SEPARATORS.fullmatch(text):
            self._separators += text
            return
        text, self._separators, self._follows_call = self._separators + text, "", False
        self._append_text(text)

    def _append_text(self, text: str) -> None:
        if visible_text := text.rstrip(" \t"):
            self._has_line_ended = visible_text.endswith("\n")
        self._is_text_blank = self._is_text_blank and not text.strip()
        self._text_parts.append(text)
        self.new_events.append(DecoderEvent("text", text))

    def _revoke_proposed_calls(self) -> None:
        """Turn the proposed calls into text, because text follows them."""
        raw_text, _ = self._proposed_calls or ("", ())
        text, self._separators, self._proposed_calls = raw_text + self._separators, "", None
        self._append_text(text)

    def drop_token(self, token: str) -> None:
        """Drop a token of `TextFormat.dropped_tokens`.

        A token that may be a word of the text is held until the text around it decides.
        """
        if not self._treats_tokens_as_markup and not is_markup_token(token):
            return
        if self._held_parts:
            self._held_parts.append((token, True))
        elif not self._pending_parts and (self._follows_call or (is_control_token(token) and self.is_blank)):
            return
        else:
            self.hold_token(token)

    def hold_token(self, token: str) -> None:
        """Hold a token until the text after it decides.

        The token is text if words follow, and is dropped before a call. Before reasoning, it is text unless it is a
        control token. At the end of the answer, `is_leaked_at_end` decides.
        """
        (self._held_parts or self._pending_parts).append((token, True))

    def _release_pending_parts(self, is_text: Callable[[str], bool]) -> None:
        """Add the pending white space as text, and the pending tokens for which `is_text` returns True."""
        pending_parts, self._pending_parts = self._pending_parts, []
        self.add_text("".join(text for text, is_token in pending_parts if not is_token or is_text(text)))

    def end_unopened_reasoning(self) -> None:
        """End reasoning by an end marker without a start marker.

        Words before the marker become reasoning when text or a call follows.
        """
        if self._is_text_blank:
            self._has_reasoning_ended = True
        else:
            self._may_be_reasoning = True

    def end_reasoning(self) -> None:
        """End reasoning that began with a start marker."""
        self._has_reasoning_ended = True

    def add_reasoning(self, text: str) -> None:
        """Add a part of the reasoning."""
        if text:
            self._release_pending_parts(lambda token: not is_control_token(token))
            self._last_character = ""
            self._reasoning_parts.append(text)
            self.new_events.append(DecoderEvent("reasoning", text))

    def add_finding(self, code: str) -> None:
        """Add the finding with this code, unless there is one already."""
        if all(finding.code != code for finding in self.findings):
            self.findings.append(Finding(code, _FINDING_MESSAGES[code], "$.content"))

    def propose_calls(self, calls: Sequence[ParsedCall], raw_text: str) -> None:
        """Add calls that count only if nothing but white space follows them.

        `raw_text` is the text of their block.
        """
        self._prepare_for_call()
        self._written_parts.append(raw_text)
        self._proposed_calls = (raw_text, calls)

    def _prepare_for_call(self) -> None:
        """Drop the pending tokens; words before an end marker without a start marker become reasoning."""
        self._release_pending_parts(lambda token: False)
        if self._may_be_reasoning:
            self._turn_into_reasoning()
        self._last_character = ""

    def add_block_calls(self, block_calls: BlockCalls) -> None:
        """Add the calls of a block.

        Calls of tools that are not offered count only if the answer has no words. They are held back, together with
        the separators, tokens and calls after them, until words follow or the answer ends.
        """
        if block_calls.is_unoffered and not self._held_parts and self.has_words:
            self._add_as_text(block_calls)
        elif block_calls.is_unoffered or self._held_parts:
            if self._may_be_reasoning:
                self._turn_into_reasoning()
            self._held_parts += [*self._pending_parts, block_calls]
            self._pending_parts, self._last_character = [], ""
        else:
            self._add_calls(block_calls)

    def _add_as_text(self, block_calls: BlockCalls) -> None:
        if block_calls.text_code:
            self.add_finding(block_calls.text_code)
        self.add_text(block_calls.raw_text)

    def _add_calls(self, block_calls: BlockCalls) -> None:
        if block_calls.calls:
            self._prepare_for_call()
            if self._proposed_calls:
                self._revoke_proposed_calls()
            self._written_parts.append(block_calls.raw_text)
        for parsed_call in block_calls.calls:
            self._add_call(parsed_call, block_calls.raw_text)
        for code in block_calls.finding_codes:
            self.add_finding(code)

    def _release_held_parts(self, *, has_text: bool) -> None:
        """Add the calls, text and tokens that were held back. `has_text` says whether the answer has words."""
        held_parts, self._held_parts = self._held_parts, []
        for part in held_parts:
            if isinstance(part, BlockCalls):
                (self._add_as_text if has_text and part.is_unoffered else self._add_calls)(part)
            elif not part[1]:
                self.add_text(part[0])
            elif not self._follows_call:
                self.hold_token(part[0])

    def _add_call(self, parsed_call: ParsedCall, raw_text: str) -> None:
        """Add a call. `raw_text` is the text of its block."""
        call_id = parsed_call.id or f"call_{len(self._calls) + 1}"
        call = TextCall(parsed_call.name, parsed_call.arguments, call_id, parsed_call.raw_text or raw_text)
        self._separators, self._follows_call = "", True
        self._calls.append(call)
        self.new_events.append(DecoderEvent("call", call=call))

    def _turn_into_reasoning(self) -> None:
        """Turn everything so far into reasoning whose start marker was part of the prompt."""
        self._may_be_reasoning, self._has_reasoning_ended = False, True
        self._pending_parts, self._last_character = [], ""
        self._reasoning_parts = ["".join(self._written_parts), *self._reasoning_parts]
        if self._calls or self._proposed_calls:
            self.add_finding("call_in_reasoning")
        self._text_parts, self._calls, self._proposed_calls = [], [], None
        self._separators, self._follows_call = "", False
        self._has_line_ended = self._is_text_blank = True
        self.new_events.append(DecoderEvent("void", "".join(self._reasoning_parts)))

    def build_result(self) -> ParsedText:
        """Return the parsed answer. Call it once, after the whole text."""
        self._release_held_parts(has_text=False)
        self._drop_leaked_tokens()
        if self._proposed_calls:
            raw_text, calls = self._proposed_calls
            self._proposed_calls = None
            self._add_calls(BlockCalls(raw_text, calls))
        text = "".join([*self._text_parts, self._separators]).strip()
        return ParsedText(text, "".join(self._reasoning_parts).strip(), tuple(self._calls), tuple(self.findings))

    def _drop_leaked_tokens(self) -> None:
        """Drop leaked tokens at the end of the answer, beginning with the last one; the others are text."""
        pending_parts, self._pending_parts = self._pending_parts, []
        text = "".join([*self._written_parts, *(part for part, _ in pending_parts)])
        token_start, tag_starts = len(text), dict[str, int]()

        def is_opened(name: str) -> bool:
            if name not in tag_starts:
                tag_starts[name] = text.find(f"<{name}")
            return 0 <= tag_starts[name] < token_start

        while pending_parts and not self._proposed_calls:
            token, is_token = pending_parts[-1]
            token_start -= len(token)
            previous_character = text[token_start - 1 : token_start]
            if (is_token and not is_leaked_at_end(token, previous_character, is_opened)) or (
                not is_token and token.strip()
            ):
                break
            pending_parts.pop()
        if not self._proposed_calls:
            self.add_text("".join(part for part, _ in pending_parts))

    def fetch_events(self) -> tuple[DecoderEvent, ...]:
        """Return the events since the last call of this method."""
        new_events, self.new_events = tuple(self.new_events), []
        return new_events
