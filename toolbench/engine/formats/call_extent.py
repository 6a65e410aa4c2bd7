"""Where the text of a call ends, found while the text is still coming.

A scanner is handed the text that is there and reads on from where it stood; it never looks at a character twice,
but for a few at the end that may begin a marker."""

import json
import re
from collections.abc import Sequence
from typing import Protocol

from toolbench.engine.formats.markers import get_marker_finder

_TOKEN = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|["'{}\[\]()]""", re.DOTALL)
_UP_TO_BRACKET = re.compile(
    r"""(?:[^"'{}\[\]()]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')*+""", re.DOTALL
)
_TOKEN_OR_COMMA = re.compile(_TOKEN.pattern + "|,", re.DOTALL)
_IN_STRING = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_DECODER = json.JSONDecoder()
MAX_LOOKAHEAD = 16_384  # characters in which a whole value is looked for first, which is fast and found to be the same
_OPENING, _CLOSING = "{[(", "}])"
MAX_BLANKS = 32  # white space after which no closer and no further value is awaited
_BLANK = re.compile(rf"\s{{0,{MAX_BLANKS}}}")
_NEXT_VALUE = re.compile(rf"\s{{0,{MAX_BLANKS}}}[,;]?\s{{0,{MAX_BLANKS}}}")


class ExtentScanner(Protocol):
    """`size` characters were passed. Once `ended`, the body is the first `body` of them, and all up to `total` belong
    to the call."""

    size: int
    ended: bool
    body: int
    total: int

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at`; gives the place up to which the text was passed."""
        ...


class MarkerExtent:
    """Ends at the first closer, which it takes along, or before the first ender. Between the two words of `guard` both
    are plain text, unless another call or the end of all follows right behind the closer. The second word of the guard
    counts only if a marker is what follows it."""

    def __init__(
        self, closers: Sequence[str], enders: Sequence[str] = (), guard: tuple[str, str] | None = None
    ) -> None:
        self.size = self.body = self.total = 0
        self.ended = False
        self._closers = closers
        self._guard: tuple[str, ...] = guard or ()
        self._markers = get_marker_finder(*closers, *enders, *self._guard)
        self._guarded = False
        self._reguarded = False  # a value was closed, but what follows must show that this was its end
        self._doubtful: tuple[int, int] | None = None  # a guarded closer with nothing but white space behind it so far

    def scan(self, text: str, at: int, *, final: bool) -> int:
        while not self.ended:
            found = self._markers.find(text, at, final=final)
            self._pass(text[at : found.start])
            at = found.start
            if not found.is_marker:
                self._end_of_text(final)
                return at
            at = self._meet(text[found.start : found.end], found.end)
        return at

    def _pass(self, text: str) -> None:
        self.size += len(text)
        if not text.strip():
            return
        self._doubtful = None
        if self._reguarded:
            self._guarded, self._reguarded = True, False

    def _end_of_text(self, final: bool) -> None:
        if final and self._doubtful:
            self._end(*self._doubtful)

    def _meet(self, word: str, end: int) -> int:
        before, self.size = self.size, self.size + len(word)
        if word in self._guard:
            toggles = self._guard[0] == self._guard[-1]
            self._guarded = not self._guarded if toggles else word == self._guard[0]
            self._reguarded = not toggles and not self._guarded
            self._doubtful = None
        elif not self._guarded:
            self._end(before, self.size if word in self._closers else before)
        elif word in self._closers:
            self._doubtful = (before, self.size)
        elif self._doubtful:
            self._end(*self._doubtful)
        return end

    def _end(self, body: int, total: int) -> None:
        self.ended, self.body, self.total = True, body, total


class BracketExtent:
    """A heading without brackets, then JSON or Python values, each as far as its brackets go, then a closer if there is
    one. `many` allows several values, with a comma, semicolon or nothing between them; `passed` are words with brackets
    that may stand in the heading."""

    def __init__(
        self, closers: Sequence[str], enders: Sequence[str] = (), *, passed: Sequence[str] = (), many: bool = True
    ) -> None:
        self.size = self.body = self.total = 0
        self.ended = False
        self._closers, self._enders, self._passed, self._many = closers, enders, passed, many
        self._heading = get_marker_finder(*closers, *enders, *passed, "{", "[")
        self._longest = max(map(len, (*closers, *enders)), default=0)
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._read = self._in_heading

    def scan(self, text: str, at: int, *, final: bool) -> int:
        while not self.ended:
            reached, waits = self._read(text, at, final)
            self.size += reached - at
            at = reached
            if waits:
                break
        return at

    def _end(self, body: int, total: int) -> None:
        self.ended, self.body, self.total = True, body, total

    def _in_heading(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        found = self._heading.find(text, at, final=final)
        if not found.is_marker:
            return found.start, True
        word = text[found.start : found.end]
        if word in _OPENING:
            self._read = self._in_value
            return found.start, False
        if word not in self._passed:
            end = self.size + found.start - at
            self._end(end, end + len(word) if word in self._closers else end)
        return found.end, False

    def _in_value(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        if self._depth == 0 and (size := _measure_json(text[at : at + MAX_LOOKAHEAD])):
            self._read = self._behind
            return at + size, False
        depth, size = self._depth, len(text)
        while (found := _UP_TO_BRACKET.match(text, at)) and (at := found.end()) < size:
            sign = text[at]
            at += 1
            if sign in _OPENING:
                depth += 1
            elif sign in _CLOSING:
                depth -= 1
                if depth <= 0:
                    self._depth, self._read = depth, self._behind
                    return at, False
            else:
                self._depth, self._quote, self._read = depth, sign, self._in_string
                return at, False
        self._depth = depth
        return at, True

    def _in_string(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        if self._escaped and at < len(text):
            self._escaped = False
            at_next = at + 1
            return at_next, at_next >= len(text)
        while found := _IN_STRING[self._quote].search(text, at):
            if found.group() == self._quote:
                self._read = self._in_value
                return found.end(), False
            at = found.end() + 1
            if at > len(text):
                self._escaped = True
                break
        return len(text), True

    def _behind(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """After a value: its closer, another value, or the end. Nothing is passed before that is certain."""
        window = text[at : at + 2 * MAX_BLANKS + self._longest + 2]
        rest = window[_measure_match(_BLANK, window) :]
        closer = next((word for word in self._closers if rest.startswith(word)), "")
        if closer:
            end = at + len(window) - len(rest) + len(closer)
            self._end(self.size, self.size + end - at)
            return end, False
        if not final and any(word.startswith(rest) for word in (*self._closers, *self._enders)):
            return at, True
        following = window[_measure_match(_NEXT_VALUE, window) :] if self._many else "-"
        if rest.startswith(tuple(self._enders)) or following[:1] not in ("{", "[", ""):
            self._end(self.size, self.size)
            return at, False
        if following:
            self._read = self._in_value
            return at + len(window) - len(following), False
        if not final:
            return at, True
        self._end(self.size, self.size)
        return at, False

    def begin_with_value(self) -> "BracketExtent":
        """The same, for a text that begins with the bracket itself, which may be a round one."""
        self._read = self._in_value
        return self


def find_value_end(text: str, at: int) -> int | None:
    """Where the brackets that open at `at` are closed; None if they are not."""
    scanner = BracketExtent((), many=False).begin_with_value()
    scanner.scan(text, at, final=True)
    return at + scanner.total if scanner.ended else None


def split_arguments(text: str) -> list[str]:
    """The parts of a text between commas that stand in no brackets and no quotes."""
    parts, depth, start = [], 0, 0
    for token in _TOKEN_OR_COMMA.finditer(text):
        found = token.group()
        if found == ",":
            if depth <= 0:
                parts.append(text[start : token.start()])
                start = token.end()
        elif len(found) == 1:
            depth += (found in _OPENING) - (found in _CLOSING)
    return [*parts, text[start:]]


def _measure_json(text: str) -> int:
    """How long the JSON value is with which a text begins; 0 if it is none, or not all of it."""
    try:
        return _DECODER.raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def _measure_match(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0
