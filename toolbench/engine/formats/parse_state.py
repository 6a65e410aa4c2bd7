"""State of the parsing of one answer: its text, reasoning, calls and findings so far."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.engine.formats.mentions import is_control, is_leaked_at_end, is_tag
from toolbench.engine.formats.specification import FoundCall
from toolbench.engine.formats.types import DecoderEvent, ParsedText, TextCall
from toolbench.engine.types import Finding

_GAP = re.compile(r"[\s;,]*")
_FINDING_MESSAGES = {
    "call_cut": "The text ends inside a call; it was not executed.",
    "call_unreadable": "A call cannot be read; it stays in the text and was not executed.",
    "call_in_reasoning": "A call stands in the reasoning; it was not executed.",
    "call_unoffered": "A call of a tool that was not offered stands between words; it was not executed.",
    "closer_missing": "A call ends without its closing marker; it was read all the same.",
    "reasoning_unclosed": "The reasoning has no end.",
    "python_literals": "The arguments are written as Python values instead of JSON.",
    "quotes_repaired": "Quotation marks inside a value were not escaped.",
    "doubled_braces": "The call stands in doubled braces.",
    "name_repaired": "The tool's name had other tokens in it, or stood before its marker.",
    "parameter_repeated": "A parameter stands in a call more than once and is no list; its last value counts.",
    "delimiter_missing": "A text in a call lacks a delimiter; what stands around it says where it ends.",
    "tag_missing": "A tag of a call is missing; the call was read all the same.",
    "arguments_wrapped": "All arguments stand as JSON in one parameter.",
    "attributes": "The arguments are written as attributes.",
}


@dataclass(frozen=True, slots=True)
class ParsedCalls:
    """The calls of one block.

    Attributes:
        raw: the text of the block.
        notes: codes of deviations that were accepted.
        unsure: whether the calls name no offered tool; the block is then text if the answer has words.
        refused: the code of the finding if the block is text for that reason; "" for no finding.
    """

    raw: str
    calls: Sequence[FoundCall]
    notes: Sequence[str] = ()
    unsure: bool = False
    refused: str = ""


class ParseState:
    """Collector of the text, reasoning, calls and findings of one answer; the decoder calls it in text order.

    Attributes:
        news: the events since the last `fetch`.
        findings: the findings so far, at most one of each code.
    """

    def __init__(self, *, careful: bool = False) -> None:
        self._careful = careful
        self._pending: list[tuple[str, bool]] = []  # tokens that may be text (True), white space (False)
        self._closed = False  # reasoning was closed, perhaps empty reasoning
        self._doubted = (
            False  # an end marker came without start marker: if text follows, all text before it was reasoning
        )
        self._last = ""  # the last character of the text since a call or reasoning
        self.news: list[DecoderEvent] = []
        self.findings: list[Finding] = []
        self._text: list[str] = []
        self._told: list[str] = []  # text and calls as written, needed if all of it turns out to be reasoning
        self._gap = ""  # separators after a call, which are text only if text follows
        self._behind_call = False
        self._line_ended = self._blank = True
        self._reasoning: list[str] = []
        self._calls: list[TextCall] = []
        self._proposed: tuple[str, Sequence[FoundCall]] | None = None
        self._held: list[
            ParsedCalls | tuple[str, bool]
        ] = []  # calls that are not decided yet, and the text and tokens after them

    @property
    def blank(self) -> bool:
        """Whether only white space and reasoning were found so far."""
        return self._blank and not self._calls and not self._proposed and not self._held

    @property
    def spoken(self) -> bool:
        """Whether the answer has words so far, not counting words that may be reasoning."""
        return self._proposed is not None or not (self._blank or self._doubted)

    @property
    def thought(self) -> bool:
        """Whether reasoning was closed before."""
        return self._closed or bool(self._reasoning)

    @property
    def last(self) -> str:
        """The last character of the text since a call or reasoning; "" if there is none."""
        return self._pending[-1][0][-1:] if self._pending else self._last

    def in_line(self) -> bool:
        """Return whether words stand before this position on its line."""
        return not self.blank and not self.at_line()

    def at_line(self) -> bool:
        """Return whether a line begins at this position; a line also begins after a call."""
        return self._behind_call or self._line_ended or bool(self._held)

    def say(self, text: str) -> None:
        """Add text."""
        if not text:
            return
        if self._held:
            if _GAP.fullmatch(text):
                self._held.append((text, False))
                return
            self._decide(has_text=True)
        if self._pending:
            self._pending.append((text, False))
            if text.strip():
                self._settle(lambda token: True)
            return
        if self._doubted and text.strip():
            self.void()
        self._told.append(text)
        self._last = text[-1]
        if self._proposed:
            self._gap += text
            if text.strip():
                self._revoke()
            return
        if self._behind_call and _GAP.fullmatch(text):
            self._gap += text
            return
        text, self._gap, self._behind_call = self._gap + text, "", False
        self._put(text)

    def _put(self, text: str) -> None:
        if visible := text.rstrip(" \t"):
            self._line_ended = visible.endswith("\n")
        self._blank = self._blank and not text.strip()
        self._text.append(text)
        self.news.append(DecoderEvent("text", text))

    def _revoke(self) -> None:
        """Turn the proposed calls into text, because text follows them."""
        raw, _ = self._proposed or ("", ())
        text, self._gap, self._proposed = raw + self._gap, "", None
        self._put(text)

    def drop(self, token: str) -> None:
        """Take a token that has no meaning of its own.

        If it may be a word of the text, the text beside it decides.
        """
        if not self._careful and not is_tag(token):
            return
        if self._held:
            self._held.append((token, True))
        elif not self._pending and (self._behind_call or (is_control(token) and self.blank)):
            return
        else:
            self.wait(token)

    def wait(self, token: str) -> None:
        """Take a token that is text if words follow, and is dropped before a call or at the end."""
        (self._held or self._pending).append((token, True))

    def _settle(self, keep: Callable[[str], bool]) -> None:
        """Add the pending white space, and the pending tokens for which `keep` returns True, as text."""
        pending, self._pending = self._pending, []
        self.say("".join(text for text, is_token in pending if not is_token or keep(text)))

    def end_thought(self) -> None:
        """Take an end marker of reasoning without a start marker.

        If anything follows, the words before it were reasoning.
        """
        if self._blank:
            self._closed = True
        else:
            self._doubted = True

    def close_thought(self) -> None:
        """Take the end marker of reasoning that had a start marker."""
        self._closed = True

    def think(self, text: str) -> None:
        """Add reasoning."""
        if text:
            self._settle(lambda token: not is_control(token))
            self._last = ""
            self._reasoning.append(text)
            self.news.append(DecoderEvent("reasoning", text))

    def note(self, code: str) -> None:
        """Add the finding with this code, unless there is one already."""
        if all(finding.code != code for finding in self.findings):
            self.findings.append(Finding(code, _FINDING_MESSAGES[code], "$.content"))

    def propose(self, calls: Sequence[FoundCall], raw: str) -> None:
        """Take calls that count only if only white space follows them."""
        self._before_call()
        self._told.append(raw)
        self._proposed = (raw, calls)

    def _before_call(self) -> None:
        self._settle(lambda token: False)
        if self._doubted:
            self.void()
        self._last = ""

    def read(self, written: ParsedCalls) -> None:
        """Take the calls of a block.

        Calls of tools that are not offered run only if the answer has no words. That is known at its end; until then
        the text that follows is held back.
        """
        if written.unsure and not self._held and self.spoken:
            self._refuse(written)
        elif written.unsure or self._held:
            if self._doubted:
                self.void()
            self._held += [*self._pending, written]
            self._pending, self._last = [], ""
        else:
            self._run(written)

    def _refuse(self, written: ParsedCalls) -> None:
        if written.refused:
            self.note(written.refused)
        self.say(written.raw)

    def _run(self, written: ParsedCalls) -> None:
        for found in written.calls:
            self.call(found, written.raw)
        for note in written.notes:
            self.note(note)

    def _decide(self, *, has_text: bool) -> None:
        """Add the calls, text and tokens that were held back. `has_text` says whether the answer has words."""
        held, self._held = self._held, []
        for event in held:
            if isinstance(event, ParsedCalls):
                (self._refuse if has_text and event.unsure else self._run)(event)
            elif not event[1]:
                self.say(event[0])
            elif not self._behind_call:
                self.wait(event[0])

    def call(self, found: FoundCall, raw: str) -> None:
        """Add a call. `raw` is the text of its block."""
        self._before_call()
        if self._proposed:
            self._revoke()
        made = found.id or f"call_{len(self._calls) + 1}"
        call = TextCall(found.name, found.arguments, made, found.raw or raw)
        self._gap, self._behind_call = "", True
        if not self._calls or self._calls[-1].raw is not raw:
            self._told.append(raw)
        self._calls.append(call)
        self.news.append(DecoderEvent("call", call=call))

    def void(self) -> None:
        """Turn everything so far into reasoning whose start marker was part of the prompt."""
        self._doubted, self._closed, self._pending, self._last = False, True, [], ""
        self._reasoning = ["".join(self._told)]
        if self._calls or self._proposed:
            self.note("call_in_reasoning")
        self._text, self._calls, self._proposed = [], [], None
        self._gap, self._behind_call = "", False
        self._line_ended = self._blank = True
        self.news.append(DecoderEvent("void", self._reasoning[0]))

    def parsed(self) -> ParsedText:
        """Return the parsed answer. Call it once, when the whole text was read."""
        self._decide(has_text=False)
        self._end()
        if self._proposed:
            raw, calls = self._proposed
            self._proposed = None
            for found in calls:
                self.call(found, raw)
        text = "".join([*self._text, self._gap]).strip()
        return ParsedText(text, "".join(self._reasoning).strip(), tuple(self._calls), tuple(self.findings))

    def _end(self) -> None:
        """Drop leaked tokens at the end of the answer, beginning with the last one; the others are text."""
        pending, self._pending = self._pending, []
        text = "".join([*self._told, *(event for event, _ in pending)])
        end, opened = len(text), dict[str, int]()

        def is_opened(name: str) -> bool:
            if name not in opened:
                opened[name] = text.find(f"<{name}")
            return 0 <= opened[name] < end

        while pending and not self._proposed:
            token, is_token = pending[-1]
            end -= len(token)
            if (is_token and not is_leaked_at_end(token, text[end - 1 : end], is_opened)) or (
                not is_token and token.strip()
            ):
                break
            pending.pop()
        if not self._proposed:
            self.say("".join(text for text, _ in pending))

    def fetch(self) -> tuple[DecoderEvent, ...]:
        """Return the events since the last fetch."""
        fetched, self.news = tuple(self.news), []
        return fetched
