"""Detection of the end of a call in a text that still arrives.

A scanner gets the text so far and continues where it stopped. It reads every character once, except a few at the end
of the text that may begin a marker.
"""

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
MAX_LOOKAHEAD = 16_384  # characters tried as one JSON value first: faster, with the same result
_OPENING, _CLOSING = "{[(", "}])"
MAX_BLANKS = 32  # characters of white space within which an end marker or a further value must follow
_BLANK = re.compile(rf"\s{{0,{MAX_BLANKS}}}")
_NEXT_VALUE = re.compile(rf"\s{{0,{MAX_BLANKS}}}[,;]?\s{{0,{MAX_BLANKS}}}")


class ExtentScanner(Protocol):
    """A scanner that finds the end of a call.

    Attributes:
        size: the number of characters read so far.
        ended: whether the end of the call was found.
        body: the length of the body, once `ended`.
        total: the length of the body and the end marker, once `ended`.
    """

    size: int
    ended: bool
    body: int
    total: int

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at` and return the index up to which the text was read.

        With `final` no text follows.
        """
        ...


class MarkerExtent:
    """A scanner for a call that ends with the first of `closers` or before the first of `enders`.

    Between the two markers of `guard` all of these are plain text, except an end marker that is followed directly by
    another marker or the end of the text. The second marker of the guard counts only if a marker follows it directly.
    White space between markers is ignored.
    """

    def __init__(
        self, closers: Sequence[str], enders: Sequence[str] = (), guard: tuple[str, str] | None = None
    ) -> None:
        self.size = self.body = self.total = 0
        self.ended = False
        self._closers = closers
        self._guard: tuple[str, ...] = guard or ()
        self._markers = get_marker_finder(*closers, *enders, *self._guard)
        self._guarded = False
        self._reguarded = False  # the guard was closed; the text that follows must confirm it
        self._doubtful: tuple[int, int] | None = None  # a guarded end marker, only white space behind it so far

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at` and return the index up to which the text was read."""
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
    """A scanner for a call that ends with its JSON or Python values.

    A heading without brackets may come before the first value. An end marker that follows the values belongs to the
    call.

    Args:
        closers: end markers that belong to the call.
        enders: markers before which the call ends.
        passed: words with brackets that may occur in the heading.
        many: whether several values may follow one another, with a comma, a semicolon or nothing between them.
    """

    def __init__(
        self, closers: Sequence[str], enders: Sequence[str] = (), *, passed: Sequence[str] = (), is_list: bool = True
    ) -> None:
        self.size = self.body = self.total = 0
        self.ended = False
        self._closers, self._enders, self._passed, self._many = closers, enders, passed, is_list
        self._heading = get_marker_finder(*closers, *enders, *passed, "{", "[")
        self._longest = max(map(len, (*closers, *enders)), default=0)
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._read = self._in_heading

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at` and return the index up to which the text was read."""
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
        """Read what follows a value: an end marker, another value, or the end of the call.

        No character counts as read before it is certain which one it is.
        """
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
        """Return the scanner, set to a text that begins with a bracket; this may also be a round one."""
        self._read = self._in_value
        return self


def find_value_end(text: str, at: int) -> int | None:
    """Return the index behind the bracket that closes the one at `at`, or None if it is not closed."""
    scanner = BracketExtent((), is_list=False).begin_with_value()
    scanner.scan(text, at, final=True)
    return at + scanner.total if scanner.ended else None


def split_arguments(text: str) -> list[str]:
    """Split a text at the commas that stand outside of brackets and quotes."""
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
    """Return the length of the JSON value at the beginning of a text, or 0 if there is no complete one."""
    try:
        return _DECODER.raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def _measure_match(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0
