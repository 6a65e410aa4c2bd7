"""A JSON log of Inspect AI, read one sample at a time: Python's own scanner is given the place where each begins.

`ijson` was compared: it is no faster here, and it refuses NaN, which Inspect AI writes."""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.messages import JsonObject

_SAMPLES = "samples"
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class LogDocument:
    """A log that was read once to its end, so that its JSON is known to be whole.

    Attributes:
        header: everything but the samples.
        samples_at: where the list of samples begins in `text`; None where there is none.
        count: values in that list.
    """

    text: str
    header: JsonObject
    samples_at: int | None
    count: int

    def samples(self) -> Iterator[JsonObject]:
        """Read the samples again, holding one at a time; a value that is no object is passed over."""
        if self.samples_at is not None:
            yield from (value for value in _elements(self.text, self.samples_at) if isinstance(value, dict))


def read_log_document(raw: bytes) -> LogDocument:
    """Return the log in `raw`.

    Raises:
        RecursionError: it is nested too deeply.
        ValueError: it is not a JSON object.
    """
    text = raw.decode(json.detect_encoding(raw), "surrogatepass")
    header: JsonObject = {}
    samples_at, count = None, 0
    at = _behind(text, _next(text, 0), "{")
    ended = text.startswith("}", at)
    at += ended
    while not ended:
        key, at = _value(text, at)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        at = _behind(text, _next(text, at), ":")
        if key == _SAMPLES and text.startswith("[", at):
            samples_at = at
            count, at = _count(text, at)
        else:
            header[key], at = _value(text, at)
        at = _next(text, at)
        ended = text.startswith("}", at)
        at = at + 1 if ended else _behind(text, at, ",")
    if _next(text, at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return LogDocument(text, header, samples_at, count)


def _count(text: str, at: int) -> tuple[int, int]:
    """The number of values of the list that begins at `at`, and where it ends."""
    elements = _elements(text, at)
    count = 0
    while True:
        try:
            next(elements)
        except StopIteration as end:
            return count, end.value
        count += 1


def _elements(text: str, at: int) -> Generator[Any, None, int]:
    """Each value of the list that begins at `at`; returns where the list ends."""
    at = _next(text, at + 1)
    if text.startswith("]", at):
        return at + 1
    while True:
        value, at = _value(text, at)
        yield value
        at = _next(text, at)
        if text.startswith("]", at):
            return at + 1
        at = _behind(text, at, ",")


def _value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def _behind(text: str, at: int, sign: str) -> int:
    """Where the next token begins behind `sign`, which has to stand at `at`."""
    if not text.startswith(sign, at):
        raise json.JSONDecodeError(f"Expecting '{sign}' delimiter", text, at)
    return _next(text, at + 1)


def _next(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
