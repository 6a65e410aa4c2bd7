"""Reader of a JSON log of Inspect AI that holds one sample at a time.

Python's own JSON scanner is called at the position where each sample begins. `ijson` was compared: it is no faster
here, and it refuses NaN, which Inspect AI writes.
"""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject

_SAMPLES_KEY = "samples"
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class LogDocument:
    """A log that was parsed once to its end, so that its JSON is known to be valid.

    Attributes:
        text: the whole log.
        header: everything except the samples.
        samples_at: where the list of samples begins in `text`; None if there is none.
        count: number of values in that list.
    """

    text: str
    header: JsonObject
    samples_at: int | None
    count: int

    def samples(self) -> Iterator[JsonObject]:
        """Parse the samples again and yield them one at a time. A value that is not an object is ignored."""
        if self.samples_at is not None:
            yield from (value for value in _iter_elements(self.text, self.samples_at) if isinstance(value, dict))


def parse_log_document(raw: bytes) -> LogDocument:
    """Return the log in `raw`.

    Raises:
        RecursionError: it is nested too deeply.
        ValueError: it is not a JSON object.
    """
    text = raw.decode(json.detect_encoding(raw), "surrogatepass")
    header: JsonObject = {}
    samples_at, count = None, 0
    at = _skip_sign(text, _skip_whitespace(text, 0), "{")
    ended = text.startswith("}", at)
    at += ended
    while not ended:
        key, at = _parse_value(text, at)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        at = _skip_sign(text, _skip_whitespace(text, at), ":")
        if key == _SAMPLES_KEY and text.startswith("[", at):
            samples_at = at
            count, at = _count_elements(text, at)
        else:
            header[key], at = _parse_value(text, at)
        at = _skip_whitespace(text, at)
        ended = text.startswith("}", at)
        at = at + 1 if ended else _skip_sign(text, at, ",")
    if _skip_whitespace(text, at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return LogDocument(text, header, samples_at, count)


def _count_elements(text: str, at: int) -> tuple[int, int]:
    """Return the number of values in the list that begins at `at`, and the position after the list."""
    elements = _iter_elements(text, at)
    count = 0
    while True:
        try:
            next(elements)
        except StopIteration as end:
            return count, end.value
        count += 1


def _iter_elements(text: str, at: int) -> Generator[Any, None, int]:
    """Yield the values of the list that begins at `at`; return the position after the list."""
    at = _skip_whitespace(text, at + 1)
    if text.startswith("]", at):
        return at + 1
    while True:
        value, at = _parse_value(text, at)
        yield value
        at = _skip_whitespace(text, at)
        if text.startswith("]", at):
            return at + 1
        at = _skip_sign(text, at, ",")


def _parse_value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def _skip_sign(text: str, at: int, sign: str) -> int:
    """Return where the token after `sign` begins.

    Raises:
        json.JSONDecodeError: `sign` is not at `at`.
    """
    if not text.startswith(sign, at):
        raise json.JSONDecodeError(f"Expecting '{sign}' delimiter", text, at)
    return _skip_whitespace(text, at + 1)


def _skip_whitespace(text: str, at: int) -> int:
    found = _WHITESPACE.match(text, at)
    return found.end() if found else at
