"""Reading of server-sent events from chunks of bytes."""

import re
from collections.abc import Iterator

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.unrepresentable_numbers import read_answer_json

Payload = JsonObject | str  # data of an event: a JSON object, or the text of any other data
DONE = "[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LEADING_BLANKS = re.compile(rb"(?:\s|%s)*" % _BOM)  # white space and byte order marks before an answer


class EventReader:
    """Reader that yields the data of each event as soon as it is complete.

    An event ends at a blank line, or after its first data line if that is a JSON object or [DONE], since some endpoints
    leave blank lines out. Comments and fields other than `data` and `error` are ignored. A line `error: …`, which old
    versions of llama.cpp send, counts as the data `{"error": …}`.
    """

    def __init__(self) -> None:
        self._unread_bytes = bytearray()
        self._searched_length = 0  # no line end begins before this index of the unread bytes
        self._data_lines: list[str] = []
        self._is_first_line = True

    def feed(self, chunk: bytes) -> Iterator[Payload]:
        """Add bytes and yield the events that are complete."""
        self._unread_bytes += chunk
        yield from self._read()

    def close(self) -> Iterator[Payload]:
        """Yield the events that are left, because the last line has no line end or no blank line follows it."""
        self._unread_bytes += b"\n\n"
        yield from self._read()

    def _read(self) -> Iterator[Payload]:
        """Read the complete lines and yield the events that they complete.

        A line with a carriage return at the end of the bytes is not read yet: a line feed may follow.
        """
        line_start = 0
        while line_end := _LINE_END.search(self._unread_bytes, max(line_start, self._searched_length)):
            if line_end.group() == b"\r" and line_end.end() == len(self._unread_bytes):
                break
            line, line_start = bytes(self._unread_bytes[line_start : line_end.start()]), line_end.end()
            yield from self._read_line(line)
        del self._unread_bytes[:line_start]
        self._searched_length = max(0, len(self._unread_bytes) - 1)

    def _read_line(self, line: bytes) -> Iterator[Payload]:
        """Read a line, given without its line end, and yield the events that it completes."""
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BOM), False
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
        if self._data_lines or not _is_complete_payload(payload):
            self._data_lines.append(text)
        else:
            yield payload

    def _flush(self) -> Iterator[Payload]:
        """Yield the collected data lines: joined if together they are one JSON object, else one by one."""
        lines, self._data_lines = self._data_lines, []
        if len(lines) < 2:
            yield from lines
            return
        joined_payload = _parse_payload("\n".join(lines))
        yield from [joined_payload] if _is_complete_payload(joined_payload) else map(_parse_payload, lines)


class EventOrBodyReader:
    """Reader of an answer that was requested as a stream.

    The first bytes decide whether the answer is a stream of events or one JSON body.

    Attributes:
        body: the bytes of an answer that is one JSON body, without leading white space; None for events, and as long as
            only white space was received.
    """

    def __init__(self) -> None:
        self.body: bytearray | None = None
        self._events = EventReader()
        self._is_undecided = True
        self._leading_bytes = b""

    def feed(self, chunk: bytes) -> Iterator[Payload]:
        """Add bytes and return the events that are complete; none for a JSON body."""
        if self._is_undecided:
            chunk = _LEADING_BLANKS.sub(b"", self._leading_bytes + chunk, count=1)
            self._is_undecided = _BOM.startswith(chunk)
            if self._is_undecided:
                self._leading_bytes = chunk
                return iter(())
            if chunk[:1] in (b"{", b"["):
                self.body = bytearray()
        if self.body is None:
            return self._events.feed(chunk)
        self.body += chunk
        return iter(())

    def close(self) -> Iterator[Payload]:
        """Return the events that are left, as `EventReader.close` does."""
        return self._events.close()


def is_broken_event(text: str) -> bool:
    """Return whether the text of an event is neither JSON nor [DONE]."""
    try:
        read_json(text)
    except InvalidJsonError:
        return not _is_complete_payload(text)
    return False


def _parse_payload(text: str) -> Payload:
    """Return the JSON object in the data of an event, or the data as text if they are no JSON object."""
    try:
        value = read_answer_json(text)
    except InvalidJsonError:
        return text
    return value if isinstance(value, dict) else text


def _is_complete_payload(payload: Payload) -> bool:
    """Return whether the data of an event needs no further line."""
    return isinstance(payload, dict) or payload.strip() == DONE
