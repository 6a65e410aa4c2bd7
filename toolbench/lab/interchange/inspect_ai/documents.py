"""Parser of a JSON log of Inspect AI that keeps at most one parsed sample in memory.

`JSONDecoder.raw_decode` is called at the start of each sample. The library `ijson` is not faster here, and it rejects
NaN, which Inspect AI writes.
"""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import is_too_deep
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.json_shapes import MAX_IMPORTED_DEPTH, TOO_DEEP

_SAMPLES_KEY = "samples"
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class LogDocument:
    """Log that is valid JSON, with its parsed header. Its samples are parsed when they are read.

    Attributes:
        text: the complete log.
        header: everything except the list of samples.
        samples_at: position in `text` of the opening bracket of the list of samples; None if there is no list.
        count: number of values in the list; 0 if there is no list.
    """

    text: str
    header: JsonObject
    samples_at: int | None
    count: int

    def iter_samples(self) -> Iterator[JsonObject]:
        """Parse the samples and yield them one at a time. Values that are not objects are skipped."""
        if self.samples_at is not None:
            yield from (value for value in _iter_elements(self.text, self.samples_at) if isinstance(value, dict))


def parse_log_document(content: bytes) -> LogDocument:
    """Parse a log without keeping its parsed samples in memory.

    Raises:
        ValueError: the content is not a JSON object, or is nested too deeply.
    """
    text = content.decode(json.detect_encoding(content), "surrogatepass")
    header: JsonObject = {}
    samples_at, count = None, 0
    position = _skip_delimiter(text, _skip_whitespace(text, 0), "{")
    is_closed = text.startswith("}", position)
    position += is_closed
    while not is_closed:
        key, position = _parse_value(text, position)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
        position = _skip_delimiter(text, _skip_whitespace(text, position), ":")
        if key == _SAMPLES_KEY and text.startswith("[", position):
            samples_at = position
            count, position = _count_elements(text, position)
        else:
            header[key], position = _parse_value(text, position)
        position = _skip_whitespace(text, position)
        is_closed = text.startswith("}", position)
        position = position + 1 if is_closed else _skip_delimiter(text, position, ",")
    if _skip_whitespace(text, position) != len(text):
        raise json.JSONDecodeError("Extra data", text, position)
    return LogDocument(text, header, samples_at, count)


def _count_elements(text: str, position: int) -> tuple[int, int]:
    """Return the number of values in the list that begins at `position`, and the position after the list."""
    elements = _iter_elements(text, position)
    count = 0
    while True:
        try:
            next(elements)
        except StopIteration as end:
            return count, end.value
        count += 1


def _iter_elements(text: str, position: int) -> Generator[Any, None, int]:
    """Yield the values of the list that begins at `position`; return the position after the list."""
    position = _skip_whitespace(text, position + 1)
    if text.startswith("]", position):
        return position + 1
    while True:
        value, position = _parse_value(text, position)
        yield value
        position = _skip_whitespace(text, position)
        if text.startswith("]", position):
            return position + 1
        position = _skip_delimiter(text, position, ",")


def _parse_value(text: str, position: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if is_too_deep(value, MAX_IMPORTED_DEPTH):
        raise ValueError(TOO_DEEP)
    return value, end


def _skip_delimiter(text: str, position: int, delimiter: str) -> int:
    """Return the position of the token after `delimiter`.

    Raises:
        json.JSONDecodeError: `delimiter` is not at `position`.
    """
    if not text.startswith(delimiter, position):
        raise json.JSONDecodeError(f"Expecting '{delimiter}' delimiter", text, position)
    return _skip_whitespace(text, position + 1)


def _skip_whitespace(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position
