"""Detection of the end of a call in a text that arrives in chunks.

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
MAX_LOOKAHEAD = 16_384  # characters that are first parsed as one JSON value, which is faster and gives the same result
_OPENING, _CLOSING = "{[(", "}])"
MAX_BLANKS = 32  # characters of white space within which an end marker or a further value must follow
_BLANK = re.compile(rf"\s{{0,{MAX_BLANKS}}}")
_NEXT_VALUE = re.compile(rf"\s{{0,{MAX_BLANKS}}}[,;]?\s{{0,{MAX_BLANKS}}}")


class ExtentScanner(Protocol):
    """A scanner that finds the end of a call; it starts at the beginning of the call's body.

    Attributes:
        size: the number of characters read so far.
        ended: whether the end of the call was found. Until then `body` and `total` are not valid.
        body: the length of the body.
        total: the length of the body and the end marker.
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
        self._guard_end_unconfirmed = False  # the guard was closed; a marker must follow directly to confirm it
        self._possible_end: tuple[int, int] | None = None  # body and total, if the last guarded end marker is the end

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at` and return the index up to which the text was read."""
        while not self.ended:
            found = self._markers.find(text, at, final=final)
            self._skip_text(text[at : found.start])
            at = found.start
            if not found.is_marker:
                self._finish_text(final)
                return at
            at = self._read_marker(text[found.start : found.end], found.end)
        return at

    def _skip_text(self, text: str) -> None:
        self.size += len(text)
        if not text.strip():
            return
        self._possible_end = None
        if self._guard_end_unconfirmed:
            self._guarded, self._guard_end_unconfirmed = True, False

    def _finish_text(self, final: bool) -> None:
        if final and self._possible_end:
            self._set_end(*self._possible_end)

    def _read_marker(self, marker: str, end: int) -> int:
        """Count a marker, update the state of the guard and set the end of the call if the marker ends it."""
        size_before, self.size = self.size, self.size + len(marker)
        if marker in self._guard:
            toggles = self._guard[0] == self._guard[-1]
            self._guarded = not self._guarded if toggles else marker == self._guard[0]
            self._guard_end_unconfirmed = not toggles and not self._guarded
            self._possible_end = None
        elif not self._guarded:
            self._set_end(size_before, self.size if marker in self._closers else size_before)
        elif marker in self._closers:
            self._possible_end = (size_before, self.size)
        elif self._possible_end:
            self._set_end(*self._possible_end)
        return end

    def _set_end(self, body: int, total: int) -> None:
        self.ended, self.body, self.total = True, body, total


class BracketExtent:
    """A scanner for a call that ends with its JSON or Python values.

    A heading without brackets may come before the first value. An end marker that follows the values belongs to the
    call.

    Args:
        closers: end markers that belong to the call.
        enders: markers before which the call ends.
        passed: words with brackets that may occur in the heading.
        is_list: whether several values may follow one another, with a comma, a semicolon or nothing between them.
    """

    def __init__(
        self, closers: Sequence[str], enders: Sequence[str] = (), *, passed: Sequence[str] = (), is_list: bool = True
    ) -> None:
        self.size = self.body = self.total = 0
        self.ended = False
        self._closers, self._enders, self._passed, self._is_list = closers, enders, passed, is_list
        self._heading = get_marker_finder(*closers, *enders, *passed, "{", "[")
        self._max_marker_length = max(map(len, (*closers, *enders)), default=0)
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._read_state = self._in_heading

    def scan(self, text: str, at: int, *, final: bool) -> int:
        """Read on from `at` and return the index up to which the text was read."""
        while not self.ended:
            next_index, needs_more_text = self._read_state(text, at, final)
            self.size += next_index - at
            at = next_index
            if needs_more_text:
                break
        return at

    def _set_end(self, body: int, total: int) -> None:
        self.ended, self.body, self.total = True, body, total

    def _in_heading(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        found = self._heading.find(text, at, final=final)
        if not found.is_marker:
            return found.start, True
        word = text[found.start : found.end]
        if word in _OPENING:
            self._read_state = self._in_value
            return found.start, False
        if word not in self._passed:
            end = self.size + found.start - at
            self._set_end(end, end + len(word) if word in self._closers else end)
        return found.end, False

    def _in_value(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read a value up to its closing bracket or the start of a string."""
        if self._depth == 0 and (size := _measure_json(text[at : at + MAX_LOOKAHEAD])):
            self._read_state = self._after_value
            return at + size, False
        depth, size = self._depth, len(text)
        while (found := _UP_TO_BRACKET.match(text, at)) and (at := found.end()) < size:
            character = text[at]
            at += 1
            if character in _OPENING:
                depth += 1
            elif character in _CLOSING:
                depth -= 1
                if depth <= 0:
                    self._depth, self._read_state = depth, self._after_value
                    return at, False
            else:
                self._depth, self._quote, self._read_state = depth, character, self._in_string
                return at, False
        self._depth = depth
        return at, True

    def _in_string(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read a string up to its closing quote."""
        if self._escaped and at < len(text):
            self._escaped = False
            at_next = at + 1
            return at_next, at_next >= len(text)
        while found := _IN_STRING[self._quote].search(text, at):
            if found.group() == self._quote:
                self._read_state = self._in_value
                return found.end(), False
            at = found.end() + 1
            if at > len(text):
                self._escaped = True
                break
        return len(text), True

    def _after_value(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Read the text after a value: an end marker, another value, or text outside of the call.

        No character counts as read before it is certain which of the three follows.
        """
        window = text[at : at + 2 * MAX_BLANKS + self._max_marker_length + 2]
        after_blanks = window[_measure_match(_BLANK, window) :]
        closer = next((marker for marker in self._closers if after_blanks.startswith(marker)), "")
        if closer:
            end = at + len(window) - len(after_blanks) + len(closer)
            self._set_end(self.size, self.size + end - at)
            return end, False
        if not final and any(marker.startswith(after_blanks) for marker in (*self._closers, *self._enders)):
            return at, True
        following = window[_measure_match(_NEXT_VALUE, window) :] if self._is_list else "-"
        if after_blanks.startswith(tuple(self._enders)) or following[:1] not in ("{", "[", ""):
            self._set_end(self.size, self.size)
            return at, False
        if following:
            self._read_state = self._in_value
            return at + len(window) - len(following), False
        if not final:
            return at, True
        self._set_end(self.size, self.size)
        return at, False

    def begin_with_value(self) -> "BracketExtent":
        """Return this scanner, set to a text that begins with a bracket, also a round one, without a heading."""
        self._read_state = self._in_value
        return self


def find_value_end(text: str, at: int) -> int | None:
    """Return the index after the bracket that closes the one at index `at`, or None if it is not closed."""
    scanner = BracketExtent((), is_list=False).begin_with_value()
    scanner.scan(text, at, final=True)
    return at + scanner.total if scanner.ended else None


def split_arguments(text: str) -> list[str]:
    """Split a text at the commas that stand outside of brackets and quotes."""
    parts, depth, start = [], 0, 0
    for token in _TOKEN_OR_COMMA.finditer(text):
        token_text = token.group()
        if token_text == ",":
            if depth <= 0:
                parts.append(text[start : token.start()])
                start = token.end()
        elif len(token_text) == 1:
            depth += (token_text in _OPENING) - (token_text in _CLOSING)
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
