"""Reading of a file of recorded traffic, record by record, in any of the known forms."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from toolbench.lab.interchange.traffic import langfuse, openai, otlp
from toolbench.lab.interchange.traffic.exchanges import ExchangeSkippedError, RecordedExchange

MAX_FILE_BYTES = 64 << 20
NOT_JSON = "the line is no JSON object"


class TrafficRecord(NamedTuple):
    """One record of a file.

    Attributes:
        number: its line, or its position in a JSON array, from 1.
        exchange: what was recorded; None if it was skipped.
        reason: why it was skipped; empty otherwise.
    """

    number: int
    exchange: RecordedExchange | None
    reason: str


def iterate_records(data: bytes) -> Iterator[TrafficRecord]:
    """Yield each record of a file: JSON Lines, a JSON array, or one JSON object over several lines.

    Spans of one OTLP record get the same number.
    """
    for number, document in _iterate_documents(data):
        if not isinstance(document, Mapping):
            yield TrafficRecord(number, None, NOT_JSON)
        elif "resourceSpans" in document:
            for attributes in otlp.iterate_spans(document):
                yield _read(number, otlp.read_span, attributes)
        else:
            reader = langfuse.read_record if langfuse.is_observation(document) else openai.read_record
            yield _read(number, reader, document)


def _read(
    number: int, reader: Callable[[Mapping[str, Any]], RecordedExchange], document: Mapping[str, Any]
) -> TrafficRecord:
    try:
        return TrafficRecord(number, reader(document), "")
    except ExchangeSkippedError as skipped:
        return TrafficRecord(number, None, str(skipped))


def _iterate_documents(data: bytes) -> Iterator[tuple[int, Any]]:
    first_line = data.lstrip().partition(b"\n")[0]
    if not isinstance(_parse(first_line), Mapping):
        whole = _parse(data)
        if isinstance(whole, list | Mapping):
            yield from enumerate(whole if isinstance(whole, list) else [whole], start=1)
            return
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            yield number, _parse(line)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
