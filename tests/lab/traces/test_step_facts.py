import json
from typing import Any

import pytest

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import Finding, ParseError
from toolbench.lab.traces.step_facts import (
    build_stored,
    dump_details,
    load_details,
    load_exchange_error,
    to_column_json,
    to_column_text,
)


def test_dump_details_round_trip_keeps_nul_surrogate_and_nan() -> None:
    odd = {"text": "a\x00\ud800é", "nan": float("nan")}
    stored = dump_details(odd)
    assert stored.isascii()
    restored = load_details(stored)
    assert restored["text"] == odd["text"]
    assert restored["nan"] != restored["nan"]


def test_dump_details_too_deeply_nested_names_the_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert load_details(dump_details({"arguments": deep})) == {"unreadable": "RecursionError"}


def test_load_details_of_no_object_is_empty() -> None:
    assert load_details(b"") == {}
    assert load_details(memoryview(b"[1]")) == {}
    for unreadable in (b"no JSON", b"\xff", b"[" * 100_000):
        assert load_details(unreadable) == {}


def test_build_stored_accepts_members_of_other_versions() -> None:
    members = {"mode": "native", "error": "e", "snippet": "s", "repairs": ["trim"], "mood": "bad"}
    assert build_stored(ParseError, members) == ParseError("native", "e", "s", repairs=("trim",))
    assert build_stored(Finding, {"code": "c", "message": "m"}).path == "$"


def test_load_exchange_error_ignores_keys_of_other_versions() -> None:
    error = {"code": "timeout", "message": "Late.", "named": ["tools[0]"], "mood": "bad"}
    assert load_exchange_error({"error": error}) == ExchangeError("timeout", "Late.", named=("tools[0]",))
    assert load_exchange_error({"error": None}) is None


@pytest.mark.parametrize(
    ("value", "expected"), [("plain", "plain"), (None, ""), ("a\x00b", "a␀b"), ("\ud800", "?"), ("é" * 300, "é" * 100)]
)
def test_to_column_text_replaces_invalid_characters_and_truncates(value: object, expected: str) -> None:
    assert to_column_text(value, 100) == expected


def test_to_column_json_replaces_invalid_values() -> None:
    assert json.loads(json.dumps(to_column_json({"a\x00": ["\ud800", float("inf"), (1,)]}))) == {"a␀": ["?", None, [1]]}
