"""Encoder of OTLP's JSON form into its binary form, and parser of an endpoint's binary answer.

The field numbers are those of opentelemetry-proto 1.x, in which a field never changes its number.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.types import JsonObject

_Fields = Mapping[str, tuple[int, str]]  # by name in JSON: field number, and kind of value or name of a message
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types

_MESSAGES: Mapping[str, _Fields] = {
    "TracesData": {"resourceSpans": (1, "ResourceSpans")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "Scope": {"name": (1, "text"), "version": (2, "text")},
    "Span": {
        "traceId": (1, "hex"),
        "spanId": (2, "hex"),
        "parentSpanId": (4, "hex"),
        "name": (5, "text"),
        "kind": (6, "integer"),
        "startTimeUnixNano": (7, "fixed64"),
        "endTimeUnixNano": (8, "fixed64"),
        "attributes": (9, "KeyValue"),
        "events": (11, "Event"),
        "status": (15, "Status"),
    },
    "Event": {"timeUnixNano": (1, "fixed64"), "name": (2, "text"), "attributes": (3, "KeyValue")},
    "Status": {"message": (2, "text"), "code": (3, "integer")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue")},
    "AnyValue": {
        "stringValue": (1, "text"),
        "boolValue": (2, "integer"),
        "intValue": (3, "integer"),
        "doubleValue": (4, "double"),
        "arrayValue": (5, "ArrayValue"),
    },
    "ArrayValue": {"values": (1, "AnyValue")},
}


def encode_traces(document: JsonObject) -> bytes:
    """Return the binary form of an object `{"resourceSpans": […]}`, without members that _MESSAGES does not have."""
    return _encode_message("TracesData", document)


def parse_rejection(answer: bytes) -> tuple[int, str]:
    """Return the number of rejected spans and the message in an endpoint's answer; 0 and "" if they are missing.

    Raises:
        ValueError: the answer is not valid.
    """
    partial_success = next((value for number, value in _iter_fields(answer) if number == 1), b"")
    if isinstance(partial_success, int):
        raise ValueError("The field partial_success is no message.")
    count, message = 0, ""
    for number, value in _iter_fields(partial_success):
        if number == 1 and isinstance(value, int):
            count = value
        elif number == 2 and isinstance(value, bytes):
            message = value.decode("utf-8", "replace")
    return count, message


def _encode_message(name: str, document: JsonObject) -> bytes:
    encoded = bytearray()
    for member, (number, kind) in _MESSAGES[name].items():
        value = document.get(member)
        if value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            encoded += _encode_field(number, kind, item)
    return bytes(encoded)


def _encode_field(number: int, kind: str, value: Any) -> bytes:
    """Return a field in binary form; `kind` is a kind of value or the name of a message, as in _MESSAGES."""
    match kind:
        case "integer":
            twos_complement = int(value) & ((1 << 64) - 1)
            return _encode_tag(number, _VARINT) + _encode_varint(twos_complement)
        case "fixed64":
            return _encode_tag(number, _FIXED64) + struct.pack("<Q", int(value))
        case "double":
            return _encode_tag(number, _FIXED64) + struct.pack("<d", value)
        case "hex":
            content = bytes.fromhex(value)
        case "text":
            content = value.encode("utf-8", "replace")
        case _:
            content = _encode_message(kind, value)
    return _encode_tag(number, _LENGTH) + _encode_varint(len(content)) + content


def _encode_tag(number: int, wire_type: int) -> bytes:
    return _encode_varint(number << 3 | wire_type)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _iter_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field: an integer for a varint, otherwise the field's bytes.

    Raises:
        ValueError: the message is not valid.
    """
    position = 0
    while position < len(message):
        tag, position = _read_varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            integer, position = _read_varint(message, position)
            yield number, integer
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire_type)
        if wire_type == _LENGTH:
            size, position = _read_varint(message, position)
        if size is None or position + size > len(message):
            raise ValueError("A field has an unknown wire type, or the message ends within it.")
        yield number, message[position : position + size]
        position += size


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after it.

    Raises:
        ValueError: the message ends within the integer, or the integer has more than 10 bytes.
    """
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise ValueError("The message ends within an integer, or the integer is too long.")
