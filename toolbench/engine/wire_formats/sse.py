"""Server-sent events as endpoints send them: from bytes in any parts to payloads."""

import re
from collections.abc import Iterator

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.unrepresentable_numbers import read_answer_json

Payload = JsonObject | str  # an event's data: the object that it is, else its text
DONE = "[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LEADING_BLANKS = re.compile(rb"(?:\s|%s)*" % _BOM)  # what may stand before an answer


class EventReader:
    """Yields the data of each event as soon as it is complete.

    An event ends at a blank line, or at the end of a line that is an object or [DONE], since some endpoints leave blank
    lines out. Comments and other fields are ignored. A line `error: …` counts as data: old versions of llama.cpp send
    it.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._pending: list[str] = []
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Payload]:
        """Add bytes and yield the events that are complete."""
        self._rest += chunk
        yield from self._read(final=False)

    def close(self) -> Iterator[Payload]:
        """Yield the events of a last line without an end, or without a blank line after it."""
        self._rest += b"\n\n"
        yield from self._read(final=True)

    def _read(self, *, final: bool) -> Iterator[Payload]:
        at = 0
        while found := _LINE_END.search(self._rest, max(at, self._searched)):
            if found.group() == b"\r" and found.end() == len(self._rest) and not final:
                break
            line, at = bytes(self._rest[at : found.start()]), found.end()
            yield from self._take(line)
        del self._rest[:at]
        self._searched = max(0, len(self._rest) - 1)

    def _take(self, line: bytes) -> Iterator[Payload]:
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if not line:
            yield from self._flush()
            return
        name, _, value = line.partition(b":")
        if name not in (b"data", b"error"):
            return
        text = value.decode("utf-8", "replace").removeprefix(" ")
        if name == b"error":
            text = f'{{"error":{text}}}'
        payload = _parse_payload(text)
        if self._pending or not _is_complete_payload(payload):
            self._pending.append(text)
        else:
            yield payload

    def _flush(self) -> Iterator[Payload]:
        lines, self._pending = self._pending, []
        if len(lines) < 2:
            yield from lines
            return
        together = _parse_payload("\n".join(lines))
        yield from [together] if _is_complete_payload(together) else map(_parse_payload, lines)


class EventOrBodyReader:
    """Reader of an answer that was requested as a stream.

    Attributes:
        whole: the bytes of an answer that came unstreamed nevertheless; None for events.
    """

    def __init__(self) -> None:
        self.whole: bytearray | None = None
        self._events = EventReader()
        self._undecided = True
        self._head = b""

    def feed(self, chunk: bytes) -> Iterator[Payload]:
        """Add bytes and return the events that are complete."""
        if self._undecided:
            chunk = _LEADING_BLANKS.sub(b"", self._head + chunk, count=1)
            self._undecided = _BOM.startswith(chunk)
            if self._undecided:
                self._head = chunk
                return iter(())
            if chunk[:1] in (b"{", b"["):
                self.whole = bytearray()
        if self.whole is None:
            return self._events.feed(chunk)
        self.whole += chunk
        return iter(())

    def close(self) -> Iterator[Payload]:
        """Return the last events."""
        return self._events.close()


def is_broken_event(text: str) -> bool:
    """Return whether the text of an event is neither JSON nor [DONE]."""
    try:
        read_json(text)
    except InvalidJsonError:
        return not _is_complete_payload(text)
    return False


def _parse_payload(text: str) -> Payload:
    try:
        value = read_answer_json(text)
    except InvalidJsonError:
        return text
    return value if isinstance(value, dict) else text


def _is_complete_payload(payload: Payload) -> bool:
    """Return whether the data of an event needs no further line."""
    return isinstance(payload, dict) or payload.strip() == DONE
