"""Reading of JSON that is still being written."""

import re
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, read_json

_STRUCTURE = re.compile(r'["{}\[\],]')
_STRING_END_OR_ESCAPE = re.compile(r'["\\]')
_CLOSING = {"{": "}", "[": "]"}
_TAIL = re.compile(r"((?<!\\)(?:\\\\)*)(?:\\u[0-9a-fA-F]{0,3}|\\)\Z")  # an incomplete escape


class JsonEndFinder:
    """Search for the end of a JSON object or list in a text that arrives in chunks.

    The time is linear in the length of the text. The grammar is not checked.

    Attributes:
        started: whether an object or a list has begun.
        quoted: whether the text so far ends inside a string.
        open: the brackets that are open, outermost first.
        break_off: where an incomplete last member can be cut off: behind the last opening bracket, or at the last
            comma.
    """

    def __init__(self) -> None:
        self.started = False
        self.quoted = False
        self.open: list[str] = []
        self.break_off = 0
        self._fed = 0
        self._escaped = False

    @property
    def closed(self) -> bool:
        """Whether the object or list is complete."""
        return self.started and not self.open and not self.quoted

    def feed(self, text: str) -> None:
        """Read the next chunk of the text."""
        at = 0
        if self._escaped and text:
            at, self._escaped = 1, False
        while found := (_STRING_END_OR_ESCAPE if self.quoted else _STRUCTURE).search(text, at):
            at = found.end()
            self._take(found.group(), self._fed + at)
            if self._escaped and at < len(text):
                at, self._escaped = at + 1, False
        self._fed += len(text)

    def _take(self, sign: str, end: int) -> None:
        if sign == '"':
            self.quoted = not self.quoted
        elif sign == "\\":
            self._escaped = self.quoted
        elif sign in _CLOSING:
            self.started = True
            self.open.append(sign)
            self.break_off = end
        elif sign == ",":
            self.break_off = end - 1
        elif sign in "}]" and self.open:
            self.open.pop()


def read_partial(text: str) -> Any:
    """Return the value of an incomplete JSON object or list so far, or None if nothing can be read.

    Open strings, objects and lists are closed where the text ends. A key without a value and an incomplete word are
    left out. The time is linear in the length of the text. Use the value for display only, never to call a tool.
    """
    extent = JsonEndFinder()
    extent.feed(text)
    if not extent.started or len(extent.open) > MAX_DEPTH:
        return None
    closers = "".join(_CLOSING[sign] for sign in reversed(extent.open))
    whole = _TAIL.sub(r"\1", text) + '"' if extent.quoted else text.rstrip()
    for body in (whole, text[: extent.break_off]):
        try:
            return read_json(body + closers)
        except InvalidJsonError:
            continue
    return None
