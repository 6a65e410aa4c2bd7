"""Binary form of spans, compared with the bytes that opentelemetry-proto 1.45.2 writes for the same spans."""

import pytest

from toolbench.lab.interchange.otlp.attributes import build_attributes
from toolbench.lab.interchange.otlp.protobuf import encode_traces, parse_rejection

ATTRIBUTES = {
    "a": -5,
    "b": True,
    "c": 0.25,
    "d": ["x", "y" * 200],
    "e": 9223372036854775807,
    "f": False,
    "g": "",
}
SPAN = {
    "traceId": "00ff" * 8,
    "spanId": "0a" * 8,
    "parentSpanId": "0b" * 8,
    "name": "chat Zürich",
    "kind": 3,
    "startTimeUnixNano": "1700000000000000001",
    "endTimeUnixNano": "1700000000000000301",
    "attributes": build_attributes(ATTRIBUTES),
    "events": [{"timeUnixNano": "1700000000000000300", "name": "ev", "attributes": []}],
    "status": {"code": 2, "message": "bad"},
}
RESOURCE = {
    "resource": {"attributes": build_attributes({"service.name": "toolbench"})},
    "scopeSpans": [{"scope": {"name": "s", "version": "1"}, "spans": [SPAN]}],
}
EXPECTED_HEX = (
    "0aba030a1d0a1b0a0c736572766963652e6e616d65120b0a09746f6f6c62656e63681298030a060a0173120131128d030a10"
    "00ff00ff00ff00ff00ff00ff00ff00ff12080a0a0a0a0a0a0a0a22080b0b0b0b0b0b0b0b2a0c63686174205ac3bc72696368"
    "30033901002a36fe9c9717412d012a36fe9c97174a100a0161120b18fbffffffffffffffff014a070a0162120210014a0e0a"
    "0163120921000000000000d03f4adc010a016412d6012ad3010a030a01780acb010ac801" + "79" * 200 + "4a0f0a0165"
    "120a18ffffffffffffffff7f4a070a0166120210004a070a016712020a005a0d092c012a36fe9c9717120265767a07120362"
    "61641802"
)


def test_encode_traces_equals_the_opentelemetry_package() -> None:
    assert encode_traces({"resourceSpans": [RESOURCE]}).hex() == EXPECTED_HEX
    assert encode_traces({"resourceSpans": [RESOURCE, RESOURCE]}).hex() == EXPECTED_HEX * 2


def test_encode_traces_replaces_lone_surrogates() -> None:
    span = {"name": "a\ud800b"}
    assert b"a?b" in encode_traces({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


@pytest.mark.parametrize(
    ("answer", "rejection"),
    [
        (b"", (0, "")),
        (b"\x0a\x0f\x08\xac\x02\x12\x0azu alt: \xc3\xbc", (300, "zu alt: ü")),
        (b"\x0a\x04\x08\x01\x12\x00", (1, "")),
        (b"\x15\x00\x00\x00\x00\x19\x00\x00\x00\x00\x00\x00\x00\x00\x0a\x02\x08\x02", (2, "")),
    ],
    ids=["nothing", "message", "no message", "unknown fields"],
)
def test_parse_rejection_reads_count_and_message(answer: bytes, rejection: tuple[int, str]) -> None:
    assert parse_rejection(answer) == rejection


@pytest.mark.parametrize("answer", [b"\x0a", b"\x0a\x05\x08", b"\x0b\x00", b"\x08\x01", b"\xff" * 12, b"\x0a\x01\x80"])
def test_parse_rejection_refuses_a_broken_answer(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"\."):
        parse_rejection(answer)
