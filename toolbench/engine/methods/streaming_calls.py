"""Calls in the text of a streamed answer, found as soon as they are complete."""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from toolbench.engine.events import AnswerDecoder, Delta, OnDelta
from toolbench.engine.types import JsonObject, Message, Turn

MAX_SEARCHES = 32  # searches for calls in one answer
_QUOTE_OR_BRACKET = re.compile(r'["{}\[\]]')
_STRING_END_OR_ESCAPE = re.compile(r'["\\\n]')
_OPENING_BRACKETS = {"}": "{", "]": "["}
_FENCE = re.compile(r"```[a-zA-Z_]*\s*\Z")
_MAX_FENCE_LENGTH = 64  # characters before a bracket that are searched for its fence
FindCalls = Callable[[str], Sequence[JsonObject]]
"""Takes the next part of a text and returns the calls, in OpenAI's format, that are complete with this part."""


class JsonCallWatcher:
    """Finder of calls that are one JSON value each.

    When a value that may be a call ends, `find_calls_in_text` is called with the whole text so far, at most 32 times.
    It is not called again after it has returned calls.
    """

    def __init__(self, find_calls_in_text: Callable[[str], Sequence[JsonObject]]) -> None:
        self._find_calls_in_text = find_calls_in_text
        self._parts: list[str] = []
        self._bracket_tracker = _BracketTracker()
        self._remaining_searches = MAX_SEARCHES

    def __call__(self, part: str) -> Sequence[JsonObject]:
        """Return the calls that are complete with this part of the text."""
        if not self._remaining_searches:
            return ()
        self._parts.append(part)
        if not self._bracket_tracker.feed(part):
            return ()
        calls = self._find_calls_in_text("".join(self._parts))
        self._remaining_searches = 0 if calls else self._remaining_searches - 1
        return calls


class _BracketTracker:
    """Tracker of brackets in a text that contains JSON, in time that is linear in the length of the text.

    A value may be a call if its opening bracket is outside of all other brackets or directly follows a fence, or if it
    is an object outside of all other objects. A line that ends inside quotes is not JSON: all open brackets are then
    discarded.
    """

    def __init__(self) -> None:
        self._open_brackets: list[tuple[str, bool]] = []  # (bracket, whether it may begin a call)
        self._open_object_count = 0
        self._is_quoted = False
        self._is_escaped = False
        self._last_text = ""  # the end of the text, where the fence of the next bracket may be

    def feed(self, part: str) -> bool:
        """Read the next part of the text, and return whether a value that may be a call ends in it."""
        text, index, has_ended = self._last_text + part, len(self._last_text) + self._is_escaped, False
        self._is_escaped = self._is_escaped and not part
        while match := (_STRING_END_OR_ESCAPE if self._is_quoted else _QUOTE_OR_BRACKET).search(text, index):
            index = match.end()
            if match.group() == "\\":
                self._is_escaped = index == len(text)
                index += 1
            else:
                has_ended |= self._read_character(match.group(), text, match.start())
        self._last_text = text[-_MAX_FENCE_LENGTH:]
        return has_ended

    def _read_character(self, character: str, text: str, index: int) -> bool:
        """Update the state by a character, and return whether a value that may be a call ends with it.

        Args:
            character: a bracket, a quote, or the line break at which open quotes end.
            text: the text with the character.
            index: offset of the character in `text`.
        """
        if character in "{[":
            is_outermost = not (self._open_object_count if character == "{" else self._open_brackets)
            self._open_brackets.append(
                (character, is_outermost or _FENCE.search(text, max(0, index - _MAX_FENCE_LENGTH), index) is not None)
            )
            self._open_object_count += character == "{"
        elif character == '"':
            self._is_quoted = bool(self._open_brackets) and not self._is_quoted
        elif character == "\n":
            self._is_quoted, self._open_object_count = False, 0
            self._open_brackets.clear()
        elif self._open_brackets and self._open_brackets[-1][0] == _OPENING_BRACKETS[character]:
            self._open_object_count -= character == "}"
            return self._open_brackets.pop()[1]
        return False


class _BuildDecoder(Protocol):
    def __call__(self, on_delta: OnDelta) -> AnswerDecoder: ...


class CallWatchingDecoder:
    """Decoder of a streamed answer that also emits the calls in the answer's text.

    A call that was not found while the text was received is emitted by `close`, unless the stream was truncated.

    Args:
        build_decoder: builds the inner decoder, which calls the given function with each part of the answer.
        on_delta: called with each part of the answer and with each call.
        build_watcher: builds the call finder of each attempt.
    """

    def __init__(self, build_decoder: _BuildDecoder, on_delta: OnDelta, build_watcher: Callable[[], FindCalls]) -> None:
        self._decoder = build_decoder(self._handle_delta)
        self._on_delta = on_delta
        self._build_watcher = build_watcher
        self._reset()

    def _reset(self) -> None:
        self._find_calls = self._build_watcher()
        self._emitted_call_count = 0
        self._has_text = False

    @property
    def partial(self) -> Message:
        """The message so far."""
        return self._decoder.partial

    def feed(self, chunk: bytes) -> None:
        """Decode the next bytes."""
        self._decoder.feed(chunk)

    def close(self) -> Turn:
        """Emit the calls that are left, return the parsed answer, and reset the decoder for the next attempt.

        Raises:
            MalformedAnswerError: the bytes are not an answer; the decoder is reset all the same.
        """
        try:
            turn = self._decoder.close()
            if self._has_text and not turn.is_truncated:
                for call in turn.calls_found[self._emitted_call_count :]:
                    self._emit_call(call.name, str(call.arguments))
            return turn
        finally:
            self._reset()

    def _handle_delta(self, delta: Delta) -> None:
        self._on_delta(delta)
        if delta.text:
            self._has_text = True
            for call in self._find_calls(delta.text):
                self._emit_call(call["function"]["name"], call["function"]["arguments"])

    def _emit_call(self, name: str, arguments: str) -> None:
        self._on_delta(Delta(call_index=self._emitted_call_count, name=name, arguments=arguments, is_closed=True))
        self._emitted_call_count += 1
