"""JSON that is still being written."""

import re
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, read_json

_STRUCTURE = re.compile(r'["{}\[\],]')
_STRING_END_OR_ESCAPE = re.compile(r'["\\]')
_CLOSING = {"{": "}", "[": "]"}
_TAIL = re.compile(r"((?<!\\)(?:\\\\)*)(?:\\u[0-9a-fA-F]{0,3}|\\)\Z")  # an escape that is not whole


class JsonEndFinder:
    """Follows an object or a list as its text grows, in time that is linear in its length, and knows when it is
    closed. It checks no grammar. `break_off` is where the last thing said begins: behind a bracket, or at a comma."""

    def __init__(self) -> None:
        self.started = False
        self.quoted = False
        self.open: list[str] = []
        self.break_off = 0
        self._fed = 0
        self._escaped = False

    @property
    def closed(self) -> bool:
        return self.started and not self.open and not self.quoted

    def feed(self, text: str) -> None:
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
    """What the beginning of a JSON object or list already says: open texts, objects and lists are closed where the text
    ends, a key without a value and a word that is not whole are left out. None where nothing can be read. Linear in
    the length of the text; for showing only, never for calling a tool."""
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
