"""Attributes and ids of spans in the JSON form of OTLP."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from toolbench.engine.types import JsonObject

SPAN_INTERNAL, SPAN_CLIENT = 1, 3
STATUS_ERROR = 2
MAX_INTEGER = (1 << 63) - 1


def build_attributes(values: Mapping[str, Any]) -> list[JsonObject]:
    """Return values by name as OTLP attributes; None and integers beyond ±MAX_INTEGER are left out."""
    return [
        {"key": name, "value": encoded}
        for name, value in values.items()
        if value is not None and (encoded := _encode(value)) is not None
    ]


def dump_json(value: Any) -> str:
    """Return a value as JSON text, the form that messages, instructions and tools have in attributes."""
    return json.dumps(value, ensure_ascii=False, default=str)


def build_span_id(trace_key: str, part: str) -> str:
    """Return the id of a span: 16 hexadecimal digits, the same in each export of an execution.

    Args:
        trace_key: text that is unique for each execution of a trial.
        part: "trial" for the trial's span, else the ordinal of the step.
    """
    return hashlib.sha256(f"{trace_key}/{part}".encode()).hexdigest()[:16]


def build_trace_id(trace_key: str) -> str:
    """Return the id of a trace: 32 hexadecimal digits, the same in each export of an execution."""
    return hashlib.sha256(trace_key.encode()).hexdigest()[:32]


def render_time(moment: datetime, offset_ms: float) -> str:
    """Return a time in nanoseconds since 1970 as text, the form of 64-bit integers in OTLP JSON.

    Args:
        moment: an aware time.
        offset_ms: milliseconds to add.
    """
    return str(round(moment.timestamp() * 1_000_000) * 1_000 + round(offset_ms * 1_000_000))


def _encode(value: Any) -> JsonObject | None:
    """Return a value as an OTLP AnyValue; None for an integer beyond ±MAX_INTEGER.

    Booleans, numbers and lists keep their type. All other values, and the items of a list, become text.
    """
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if abs(value) <= MAX_INTEGER else None
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [{"stringValue": str(item)} for item in value]}}
    return {"stringValue": str(value)}
