"""Reader of a file of recorded traffic in any of the supported formats, record by record."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep
from toolbench.lab.interchange.traffic import langfuse, openai, otlp
from toolbench.lab.interchange.traffic.exchanges import TOO_DEEP, ExchangeSkippedError, RecordedExchange

MAX_FILE_BYTES = 64 << 20
NOT_JSON = "the record is not a JSON object"
_MAX_RAW_DEPTH = 4 * MAX_DEPTH  # one level of a value takes up to four levels of JSON in OTLP


class TrafficRecord(NamedTuple):
    """One record of a file, or one span of an OTLP document in it.

    Attributes:
        number: number of the record's line or its position in a JSON array, from 1; the spans of one OTLP document have
            the same number.
        exchange: the recorded exchange; None if the record was skipped.
        reason: why the record was skipped; empty otherwise.
    """

    number: int
    exchange: RecordedExchange | None
    reason: str


def iter_records(data: bytes) -> Iterator[TrafficRecord]:
    """Yield each record of a file, which is JSON Lines, a JSON array or one JSON object."""
    for number, document in _iter_documents(data):
        if not isinstance(document, Mapping):
            yield TrafficRecord(number, None, NOT_JSON)
        elif is_too_deep(document, _MAX_RAW_DEPTH):
            yield TrafficRecord(number, None, TOO_DEEP)
        elif "resourceSpans" in document:
            for attributes in otlp.iter_spans(document):
                yield _read_record(number, otlp.read_span, attributes)
        else:
            reader = langfuse.read_record if langfuse.is_observation(document) else openai.read_record
            yield _read_record(number, reader, document)


def _read_record(
    number: int, reader: Callable[[Mapping[str, Any]], RecordedExchange], document: Mapping[str, Any]
) -> TrafficRecord:
    if is_too_deep(document):
        return TrafficRecord(number, None, TOO_DEEP)
    try:
        return TrafficRecord(number, reader(document), "")
    except ExchangeSkippedError as error:
        return TrafficRecord(number, None, str(error))


def _iter_documents(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the parsed JSON of each document; None for a line that is not JSON.

    A file whose first line is a JSON object is read line by line, without blank lines. Any other file is read as one
    JSON list or object, or else line by line too.
    """
    first_line = data.lstrip().partition(b"\n")[0]
    if not isinstance(_parse(first_line), Mapping):
        document = _parse(data)
        if isinstance(document, list | Mapping):
            yield from enumerate(document if isinstance(document, list) else [document], start=1)
            return
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            yield number, _parse(line)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
