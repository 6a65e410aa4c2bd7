"""Tests of JSON Pointers to values of a simulated state."""

import pytest

from toolbench.evals.json_pointers import find_pointer_value, is_pointer

STATE = {"orders": {"17": {"a/b": 1}}, "list": [1, 2], "text": "bar", "nothing": None}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/orders/17/a~1b", 1), ("/list/1", 2), ("/nothing", None), ("", STATE)],
)
def test_find_pointer_value_returns_value(pointer: str, value: object) -> None:
    assert find_pointer_value(STATE, pointer, "absent") == value


@pytest.mark.parametrize(
    "pointer",
    ["/none", "no pointer", "/orders/x/y", "/list/2", "/list/-", "/list/-/a", "/text/-", "/text/0"],
)
def test_find_pointer_value_without_value_returns_default(pointer: str) -> None:
    assert find_pointer_value(STATE, pointer, "absent") == "absent"
    assert find_pointer_value(STATE, pointer) is None


@pytest.mark.parametrize("text", ["", "orders", "/a~2", "#/a"])
def test_is_pointer_refuses_other_texts(text: str) -> None:
    assert not is_pointer(text)


def test_is_pointer_accepts_escapes_and_empty_names() -> None:
    assert all(map(is_pointer, ["/", "/a~1b/~0", "/list/-"]))
