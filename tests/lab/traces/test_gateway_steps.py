"""Steps of gateway traces as JSON: columns and details, numbered through fallbacks."""

from dataclasses import replace
from typing import Any

import pytest

from toolbench.engine.events import Request
from toolbench.lab.traces import gateway_steps
from toolbench.lab.traces.gateway_steps import pack_steps, unpack_steps
from toolbench.providers.driver.step_records import ExchangeStep


def make_exchange(**fields: Any) -> ExchangeStep:
    defaults: dict[str, Any] = {
        "ordinal": 1, "turn": 0, "attempt": 1, "url": "http://x/chat/completions",
        "request": Request(0, "chat/completions", b"{}", has_tools=True), "request_body": b"{}",
        "request_headers": {"a": "b"}, "status": 200, "response_headers": {}, "response_body": b"body",
        "body_bytes": 4, "body_cut": False, "masked": False, "started_ms": 0.0, "first_byte_ms": 5.0,
        "duration_ms": 10.0, "backoff_ms": 0.0, "retry_reason": "", "error": None, "turn_read": None,
    }  # fmt: skip
    return ExchangeStep(**(defaults | fields))


def test_pack_steps_keeps_columns_and_details_without_bodies() -> None:
    packed = pack_steps([make_exchange(chunks=((5.0, 4),))])
    assert packed is not None
    assert b'"body"' not in packed
    ((step, facts),) = unpack_steps(packed)
    assert (step.pk, step.ordinal, step.status, step.request_bytes) == (-1, 1, 200, 2)
    assert (facts["request_headers"], facts["chunks"], facts["tools_sent"]) == ({"a": "b"}, [[5.0, 4]], True)


def test_pack_steps_numbers_steps_through_fallbacks() -> None:
    first = make_exchange(status=503)
    steps = [first, replace(first, ordinal=2, attempt=2, started_ms=20.0), first, replace(first, ordinal=2, turn=1)]
    unpacked = [step for step, _ in unpack_steps(pack_steps(steps))]
    assert [(step.ordinal, step.turn, step.started_ms) for step in unpacked] == [
        (1, 0, 0.0),
        (2, 0, 20.0),
        (3, 1, 30.0),
        (4, 2, 30.0),
    ]


def test_pack_steps_of_no_or_too_many_steps_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pack_steps([]) is None
    monkeypatch.setattr(gateway_steps, "MAX_PACKED_BYTES", 10)
    assert pack_steps([make_exchange()]) is None
    assert unpack_steps(None) == ()
