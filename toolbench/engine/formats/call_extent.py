"""Detection of the end of a call in a text that arrives in chunks.

A scanner gets the text so far and continues where its last scan stopped. Few characters are read twice: those at the
end of the text whose meaning depends on what follows, and up to MAX_LOOKAHEAD characters of a value that is not
complete JSON.
"""

import json
import re
from collections.abc import Sequence
from typing import Protocol

from toolbench.engine.formats.markers import get_marker_finder

# Outside of strings an escape is a token, so that an escaped quote begins no string.
_TOKEN_OR_COMMA = re.compile(r"""\\.|"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|["'{}\[\](),]""", re.DOTALL)
# Text and complete strings, up to a bracket or to a string whose end has not arrived.
_TEXT_BEFORE_BRACKET = re.compile(
    r"""(?:[^"'{}\[\]()]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')*+""", re.DOTALL
)
_STRING_END_OR_ESCAPE = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_DECODER = json.JSONDecoder()
MAX_LOOKAHEAD = 16_384  # characters that are first read by Python's JSON parser, which is faster than the scanner
_OPENING_BRACKETS, _CLOSING_BRACKETS = "{[(", "}])"
MAX_WHITE_SPACE_LENGTH = 32  # characters; an end marker or a value after more white space does not belong to the call
_WHITE_SPACE = re.compile(rf"\s{{0,{MAX_WHITE_SPACE_LENGTH}}}")
_VALUE_SEPARATOR = re.compile(rf"\s{{0,{MAX_WHITE_SPACE_LENGTH}}}[,;]?\s{{0,{MAX_WHITE_SPACE_LENGTH}}}")


class ExtentScanner(Protocol):
    """A scanner that finds the end of a call; it starts at the beginning of the call's body.

    Attributes:
        read_length: the number of characters read so far.
        has_ended: whether the end of the call was found. Until then `body_length` and `total_length` are not valid.
        body_length: the length of the body.
        total_length: the length of the body, the end marker and white space between them; without an end marker, that
            of the body.
    """

    read_length: int
    has_ended: bool
    body_length: int
    total_length: int

    def scan(self, text: str, index: int, *, final: bool) -> int:
        """Read on from `index` and return the index up to which the text was read.

        `index` is where the last call of this method stopped. With `final` no text follows.
        """
        ...


class MarkerExtentScanner:
    """A scanner for a call that ends with one of `end_markers` or before one of `next_markers`.

    Between the two `value_markers`, markers of both kinds are plain text, except an end marker that is followed
    directly by one of `next_markers` or the end of the text. The second value marker counts only if a marker follows
    it directly, unless both value markers are the same. White space between markers is ignored.
    """

    def __init__(
        self, end_markers: Sequence[str], next_markers: Sequence[str] = (), value_markers: tuple[str, str] | None = None
    ) -> None:
        self.read_length = self.body_length = self.total_length = 0
        self.has_ended = False
        self._end_markers = end_markers
        self._value_markers: tuple[str, ...] = value_markers or ()
        self._marker_finder = get_marker_finder(*end_markers, *next_markers, *self._value_markers)
        self._is_in_value = False
        self._is_value_end_unconfirmed = False  # a marker must directly follow the second value marker to confirm it
        # Body length and total length if the last end marker between value markers is the end of the call.
        self._possible_end: tuple[int, int] | None = None

    def scan(self, text: str, index: int, *, final: bool) -> int:
        """Read on from `index` and return the index up to which the text was read."""
        while not self.has_ended:
            match = self._marker_finder.find(text, index, final=final)
            self._skip_text(text[index : match.start])
            index = match.start
            if not match.is_marker:
                self._finish_text(final)
                return index
            index = self._read_marker(text[match.start : match.end], match.end)
        return index

    def _skip_text(self, text: str) -> None:
        """Count text before a marker; text that is not blank shows that an unconfirmed marker was part of a value."""
        self.read_length += len(text)
        if not text.strip():
            return
        self._possible_end = None
        if self._is_value_end_unconfirmed:
            self._is_in_value, self._is_value_end_unconfirmed = True, False

    def _finish_text(self, final: bool) -> None:
        """End the call with an end marker between value markers if no text follows it."""
        if final and self._possible_end:
            self._set_end(*self._possible_end)

    def _read_marker(self, marker: str, end: int) -> int:
        """Count a marker, let it begin or end a value or end the call, and return `end`, the index after it."""
        length_before, self.read_length = self.read_length, self.read_length + len(marker)
        if marker in self._value_markers:
            is_toggle = self._value_markers[0] == self._value_markers[-1]
            self._is_in_value = not self._is_in_value if is_toggle else marker == self._value_markers[0]
            self._is_value_end_unconfirmed = not is_toggle and not self._is_in_value
            self._possible_end = None
        elif not self._is_in_value:
            self._set_end(length_before, self.read_length if marker in self._end_markers else length_before)
        elif marker in self._end_markers:
            self._possible_end = (length_before, self.read_length)
        elif self._possible_end:
            self._set_end(*self._possible_end)
        return end

    def _set_end(self, body_length: int, total_length: int) -> None:
        self.has_ended, self.body_length, self.total_length = True, body_length, total_length


class BracketExtentScanner:
    """A scanner for a call that ends with its JSON or Python values.

    A heading without `{` and `[`, such as a tool's name, may come before the first value. An end marker that follows
    the values belongs to the call.

    The scanner is a state machine. Its state is the method `_read_next`, which returns the index up to which it read
    and whether it needs more text.

    Args:
        end_markers: end markers that belong to the call.
        next_markers: markers before which the call ends.
        skipped_markers: markers that contain brackets, and may occur in the heading.
        allows_many_values: whether several values may follow one another, with a comma, a semicolon or nothing between
            them.
    """

    def __init__(
        self,
        end_markers: Sequence[str],
        next_markers: Sequence[str] = (),
        *,
        skipped_markers: Sequence[str] = (),
        allows_many_values: bool = True,
    ) -> None:
        self.read_length = self.body_length = self.total_length = 0
        self.has_ended = False
        self._end_markers, self._next_markers = end_markers, next_markers
        self._skipped_markers, self._allows_many_values = skipped_markers, allows_many_values
        self._heading_finder = get_marker_finder(*end_markers, *next_markers, *skipped_markers, "{", "[")
        self._max_marker_length = max(map(len, (*end_markers, *next_markers)), default=0)
        self._depth = 0
        self._quote = ""
        self._is_escaped = False
        self._read_next = self._read_heading

    def scan(self, text: str, index: int, *, final: bool) -> int:
        """Read on from `index` and return the index up to which the text was read."""
        while not self.has_ended:
            next_index, needs_more_text = self._read_next(text, index, final)
            self.read_length += next_index - index
            index = next_index
            if needs_more_text:
                break
        return index

    def _set_end(self, body_length: int, total_length: int) -> None:
        self.has_ended, self.body_length, self.total_length = True, body_length, total_length

    def _read_heading(self, text: str, index: int, final: bool) -> tuple[int, bool]:
        """Read the text before the first value; the call ends here if a marker follows instead of a value."""
        match = self._heading_finder.find(text, index, final=final)
        if not match.is_marker:
            return match.start, True
        word = text[match.start : match.end]
        if word in _OPENING_BRACKETS:
            self._read_next = self._read_value
            return match.start, False
        if word not in self._skipped_markers:
            end = self.read_length + match.start - index
            self._set_end(end, end + len(word) if word in self._end_markers else end)
        return match.end, False

    def _read_value(self, text: str, index: int, final: bool) -> tuple[int, bool]:
        """Read a value up to its closing bracket, or up to a string whose end has not arrived."""
        if self._depth == 0 and (length := _measure_json(text[index : index + MAX_LOOKAHEAD])):
            self._read_next = self._read_after_value
            return index + length, False
        depth, length = self._depth, len(text)
        while (match := _TEXT_BEFORE_BRACKET.match(text, index)) and (index := match.end()) < length:
            character = text[index]
            index += 1
            if character in _OPENING_BRACKETS:
                depth += 1
            elif character in _CLOSING_BRACKETS:
                depth -= 1
                if depth <= 0:
                    self._depth, self._read_next = depth, self._read_after_value
                    return index, False
            else:
                self._depth, self._quote, self._read_next = depth, character, self._read_string
                return index, False
        self._depth = depth
        return index, True

    def _read_string(self, text: str, index: int, final: bool) -> tuple[int, bool]:
        """Read a string up to its closing quote."""
        if self._is_escaped and index < len(text):
            self._is_escaped = False
            next_index = index + 1
            return next_index, next_index >= len(text)
        while match := _STRING_END_OR_ESCAPE[self._quote].search(text, index):
            if match.group() == self._quote:
                self._read_next = self._read_value
                return match.end(), False
            index = match.end() + 1
            if index > len(text):
                self._is_escaped = True
                break
        return len(text), True

    def _read_after_value(self, text: str, index: int, final: bool) -> tuple[int, bool]:
        """Read the text after a value: an end marker, another value, or text outside of the call.

        No character counts as read before it is certain which of the three follows.
        """
        window = text[index : index + 2 * MAX_WHITE_SPACE_LENGTH + self._max_marker_length + 2]
        after_space = window[_measure_match(_WHITE_SPACE, window) :]
        end_marker = next((marker for marker in self._end_markers if after_space.startswith(marker)), "")
        if end_marker:
            end = index + len(window) - len(after_space) + len(end_marker)
            self._set_end(self.read_length, self.read_length + end - index)
            return end, False
        if not final and any(marker.startswith(after_space) for marker in (*self._end_markers, *self._next_markers)):
            return index, True
        # If only one value is allowed, "-" stands for a text that begins no value.
        next_text = window[_measure_match(_VALUE_SEPARATOR, window) :] if self._allows_many_values else "-"
        if after_space.startswith(tuple(self._next_markers)) or next_text[:1] not in ("{", "[", ""):
            self._set_end(self.read_length, self.read_length)
            return index, False
        if next_text:
            self._read_next = self._read_value
            return index + len(window) - len(next_text), False
        if not final:
            return index, True
        self._set_end(self.read_length, self.read_length)
        return index, False

    def begin_with_value(self) -> "BracketExtentScanner":
        """Expect no heading, but a text that begins with a bracket of any kind, and return this scanner."""
        self._read_next = self._read_value
        return self


def find_value_end(text: str, index: int) -> int | None:
    """Return the index after the bracket that closes the one at `index`, or None if it is not closed."""
    scanner = BracketExtentScanner((), allows_many_values=False).begin_with_value()
    scanner.scan(text, index, final=True)
    return index + scanner.total_length if scanner.has_ended else None


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
            depth += (token_text in _OPENING_BRACKETS) - (token_text in _CLOSING_BRACKETS)
    return [*parts, text[start:]]


def _measure_json(text: str) -> int:
    """Return the length of the JSON value at the beginning of a text, or 0 if there is no complete one."""
    try:
        return _DECODER.raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def _measure_match(pattern: re.Pattern[str], text: str) -> int:
    """Return the length of a pattern's match at the beginning of a text, or 0 if it does not match."""
    match = pattern.match(text)
    return match.end() if match else 0
