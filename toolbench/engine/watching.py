"""Calls that stand in the text of a streamed answer, heard of as soon as they are whole."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from toolbench.engine.events import Decoder, Delta, Hear
from toolbench.engine.messages import JsonObject, Message, Turn
from toolbench.engine.partial_json import JsonExtent

TRIES = 32  # places of one answer where a call may end and is looked for
_BEGINS = re.compile(r"[{\[]")
Watch = Callable[[str], Sequence[JsonObject]]
"""Told of every piece of text, it gives the calls, in OpenAI's shape, that became whole with this one."""


class JsonWatch:
    """A Watch for calls that are one JSON value each: whenever one is closed, `read` is asked for the calls in all of
    the text so far. The first that it finds are all."""

    def __init__(self, read: Callable[[str], Sequence[JsonObject]]) -> None:
        self._read = read
        self._pieces: list[str] = []
        self._extent = JsonExtent()
        self._tries = TRIES

    def __call__(self, text: str) -> Sequence[JsonObject]:
        if not self._tries:
            return ()
        self._pieces.append(text)
        if not any([self._closes(line) for line in text.splitlines(keepends=True)]):
            return ()
        calls = self._read("".join(self._pieces))
        self._tries = 0 if calls else self._tries - 1
        return calls

    def _closes(self, line: str) -> bool:
        """Whether a value is over with this line, or with what came of it. Where a line ends inside of a quoted text
        there was no value."""
        begins = None if self._extent.started else _BEGINS.search(line)
        self._extent.feed(line[begins.start() :] if begins else line if self._extent.started else "")
        closed = self._extent.closed
        if closed or (self._extent.quoted and line.endswith("\n")):
            self._extent = JsonExtent()
        return closed


class _Decodes(Protocol):
    def __call__(self, heard: Hear) -> Decoder: ...


class WatchedDecoder:
    """A decoder whose listener hears of calls in the text too. `decoder` makes the one underneath for a listener,
    `watch` a Watch for every attempt."""

    def __init__(self, decoder: _Decodes, heard: Hear, watch: Callable[[], Watch]) -> None:
        self._decoder = decoder(self._hear)
        self._heard = heard
        self._new_watch = watch
        self._begin()

    def _begin(self) -> None:
        self._watch = self._new_watch()
        self._calls = 0

    @property
    def partial(self) -> Message:
        return self._decoder.partial

    def feed(self, chunk: bytes) -> None:
        self._decoder.feed(chunk)

    def close(self) -> Turn:
        try:
            return self._decoder.close()
        finally:
            self._begin()

    def _hear(self, delta: Delta) -> None:
        self._heard(delta)
        if delta.text:
            for made in self._whole(delta.text):
                self._heard(made)

    def _whole(self, text: str) -> Iterator[Delta]:
        for call in self._watch(text):
            function = call["function"]
            yield Delta(call=self._calls, name=function["name"], arguments=function["arguments"], closed=True)
            self._calls += 1
