"""Calls in the text of a streamed answer, found as soon as they are complete."""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from toolbench.engine.events import AnswerDecoder, Delta, OnDelta
from toolbench.engine.types import JsonObject, Message, Turn

MAX_READS = 32  # places of one answer where a call may end and is looked for
_STRUCTURE = re.compile(r'["{}\[\]]')
_STRING_END_OR_ESCAPE = re.compile(r'["\\\n]')
_OPENING_BRACKETS = {"}": "{", "]": "["}
_FENCE = re.compile(r"```[a-zA-Z_]*\s*\Z")
_MAX_FENCE_LENGTH = 64  # characters before a bracket in which its fence is looked for
FindCalls = Callable[[str], Sequence[JsonObject]]
"""Told of every piece of text, it gives the calls, in OpenAI's shape, that became whole with this one."""


class JsonCallWatcher:
    """Finds calls that are one JSON value each: when a value is closed, `read` is called with the text so far.

    The first calls that it finds are all.
    """

    def __init__(self, read: Callable[[str], Sequence[JsonObject]]) -> None:
        self._read = read
        self._pieces: list[str] = []
        self._brackets = _BracketTracker()
        self._tries = MAX_READS

    def __call__(self, text: str) -> Sequence[JsonObject]:
        """Return the calls that are complete with this part of the text."""
        if not self._tries:
            return ()
        self._pieces.append(text)
        if not self._brackets.feed(text):
            return ()
        calls = self._read("".join(self._pieces))
        self._tries = 0 if calls else self._tries - 1
        return calls


class _BracketTracker:
    """Follows the brackets of prose with JSON in it, in time that is linear in its length.

    A value that may be a call begins at the first bracket, after a fence, or at an object that stands in no other
    object. Unclosed brackets of the prose hide no call. If a line ends inside quotes, nothing before it was JSON.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []  # each with whether it may begin a call
        self._objects = 0
        self._quoted = False
        self._escaped = False
        self._before = ""

    def feed(self, piece: str) -> bool:
        """Return whether a value that may be a call ends in this part."""
        text, at, ended = self._before + piece, len(self._before) + self._escaped, False
        self._escaped = self._escaped and not piece
        while found := (_STRING_END_OR_ESCAPE if self._quoted else _STRUCTURE).search(text, at):
            at = found.end()
            if found.group() == "\\":
                self._escaped = at == len(text)
                at += 1
            else:
                ended |= self._take(found.group(), text, found.start())
        self._before = text[-_MAX_FENCE_LENGTH:]
        return ended

    def _take(self, sign: str, text: str, at: int) -> bool:
        """Return whether a value that may be a call ends with this character."""
        if sign in "{[":
            alone = not (self._objects if sign == "{" else self._open)
            self._open.append((sign, alone or _FENCE.search(text, max(0, at - _MAX_FENCE_LENGTH), at) is not None))
            self._objects += sign == "{"
        elif sign == '"':
            self._quoted = bool(self._open) and not self._quoted
        elif sign == "\n":
            self._quoted, self._objects = False, 0
            self._open.clear()
        elif self._open and self._open[-1][0] == _OPENING_BRACKETS[sign]:
            self._objects -= sign == "}"
            return self._open.pop()[1]
        return False


class _PartialDecoder(Protocol):
    def __call__(self, on_delta: OnDelta) -> AnswerDecoder: ...


class CallWatchingDecoder:
    """A decoder whose listener also gets the calls in the text, at the latest at its end.

    Args:
        decoder: makes the inner decoder for a listener.
        heard: the listener.
        watch: makes a FindCalls for each attempt.
    """

    def __init__(self, decoder: _PartialDecoder, on_delta: OnDelta, watch: Callable[[], FindCalls]) -> None:
        self._decoder = decoder(self._hear)
        self._heard = on_delta
        self._new_watch = watch
        self._begin()

    def _begin(self) -> None:
        self._watch = self._new_watch()
        self._calls = 0
        self._has_text = False

    @property
    def partial(self) -> Message:
        """The message so far."""
        return self._decoder.partial

    def feed(self, chunk: bytes) -> None:
        """Decode the next bytes."""
        self._decoder.feed(chunk)

    def close(self) -> Turn:
        """Return the parsed answer and reset the decoder for the next attempt."""
        try:
            turn = self._decoder.close()
            if self._has_text and not turn.cut:
                for call in turn.calls_found[self._calls :]:
                    self._tell(call.name, str(call.arguments))
            return turn
        finally:
            self._begin()

    def _hear(self, delta: Delta) -> None:
        self._heard(delta)
        if delta.text:
            self._has_text = True
            for call in self._watch(delta.text):
                self._tell(call["function"]["name"], call["function"]["arguments"])

    def _tell(self, name: str, arguments: str) -> None:
        self._heard(Delta(call=self._calls, name=name, arguments=arguments, closed=True))
        self._calls += 1
