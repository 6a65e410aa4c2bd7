import json
from typing import Any

import pytest

from toolbench.lab.traces.step_facts import dump_details, load_details, to_column_json, to_column_text


def test_facts_survive_what_no_json_column_takes() -> None:
    odd = {"text": "a\x00\ud800é", "nan": float("nan")}
    stored = dump_details(odd)
    assert stored.isascii()
    back = load_details(stored)
    assert back["text"] == odd["text"]
    assert back["nan"] != back["nan"]


def test_what_is_nested_too_deeply_is_said_instead_of_lost() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert load_details(dump_details({"arguments": deep})) == {"unreadable": "RecursionError"}


def test_no_facts_are_an_empty_object() -> None:
    assert load_details(b"") == {}
    assert load_details(memoryview(b"[1]")) == {}


@pytest.mark.parametrize(
    ("given", "kept"), [("plain", "plain"), (None, ""), ("a\x00b", "a␀b"), ("\ud800", "?"), ("é" * 300, "é" * 100)]
)
def test_texts_are_made_fit_for_a_column(given: object, kept: str) -> None:
    assert to_column_text(given, 100) == kept


def test_objects_are_made_fit_for_a_column() -> None:
    assert json.loads(json.dumps(to_column_json({"a\x00": ["\ud800", float("inf"), (1,)]}))) == {"a␀": ["?", None, [1]]}
