"""Reading of incomplete JSON, as in a streaming answer."""

import re
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, read_json

_STRUCTURE = re.compile(r'["{}\[\],]')
_STRING_END_OR_ESCAPE = re.compile(r'["\\]')
_CLOSING = {"{": "}", "[": "]"}
# An incomplete escape at the end of a text. Group 1 holds the escaped backslashes before it.
_INCOMPLETE_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)(?:\\u[0-9a-fA-F]{0,3}|\\)\Z")


class JsonEndFinder:
    """Finder of the end of a JSON object or list in a text that arrives in chunks.

    The time is linear in the length of the text. Whether the text is valid JSON is not checked.

    Attributes:
        has_started: whether an object or a list has begun.
        is_in_string: whether the text so far ends inside a string.
        open_brackets: the brackets that are open, outermost first.
        safe_end: offset in the text fed so far from which an incomplete last member can be removed: that after the
            last opening bracket, or that of the last comma if it is later; 0 if there is neither.
    """

    def __init__(self) -> None:
        self.has_started = False
        self.is_in_string = False
        self.open_brackets: list[str] = []
        self.safe_end = 0
        self._read_length = 0
        self._is_next_escaped = False

    @property
    def is_closed(self) -> bool:
        """Whether the object or list is complete."""
        return self.has_started and not self.open_brackets and not self.is_in_string

    def feed(self, text: str) -> None:
        """Read the next chunk of the text."""
        index = 0
        if self._is_next_escaped and text:
            index, self._is_next_escaped = 1, False
        while match := (_STRING_END_OR_ESCAPE if self.is_in_string else _STRUCTURE).search(text, index):
            index = match.end()
            self._read_character(match.group(), self._read_length + index)
            if self._is_next_escaped and index < len(text):
                index, self._is_next_escaped = index + 1, False
        self._read_length += len(text)

    def _read_character(self, character: str, end: int) -> None:
        """Update the state by a quote, backslash, bracket or comma.

        Args:
            character: the character.
            end: the offset after it in the text fed so far.
        """
        if character == '"':
            self.is_in_string = not self.is_in_string
        elif character == "\\":
            self._is_next_escaped = self.is_in_string
        elif character in _CLOSING:
            self.has_started = True
            self.open_brackets.append(character)
            self.safe_end = end
        elif character == ",":
            self.safe_end = end - 1
        elif character in "}]" and self.open_brackets:
            self.open_brackets.pop()


def read_partial(text: str) -> Any:
    """Return the value of an incomplete JSON object or list, or None if it cannot be read.

    Open strings, objects and lists are closed at the end of the text. A key without a value is removed, as is a number
    or literal that is not valid yet (`1.`, `tru`); a number that is valid so far (`12` of `123`) is kept. The time is
    linear in the length of the text. Use the value for display only, never to call a tool.
    """
    finder = JsonEndFinder()
    finder.feed(text)
    if not finder.has_started or len(finder.open_brackets) > MAX_DEPTH:
        return None
    closing_brackets = "".join(_CLOSING[bracket] for bracket in reversed(finder.open_brackets))
    closed_text = _INCOMPLETE_ESCAPE.sub(r"\1", text) + '"' if finder.is_in_string else text.rstrip()
    for candidate in (closed_text, text[: finder.safe_end]):
        try:
            return read_json(candidate + closing_brackets)
        except InvalidJsonError:
            continue
    return None
