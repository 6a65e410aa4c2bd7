"""Tests of reading values in the syntax of JSON and of Python."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.literals import read_value
from toolbench.engine.strict_json import write_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_read_value_gives_equal_values_for_json_and_python(value: object) -> None:
    for text in (json.dumps(value), repr(value)):
        parsed = read_value(text)
        assert parsed == value
        assert type(parsed) is type(value)


@given(st.text(st.sampled_from("[]{}()'\"\\,:0aTrue-+*#\n é\ud800"), max_size=30) | st.text(max_size=30))
@example("-" * 5000 + "1")
@example("'\\ud800'")
def test_read_value_of_any_text_raises_only_invalid_json_error(text: str) -> None:
    try:
        value = read_value(text)
    except InvalidJsonError:
        return
    assert write_json(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("('a', 1)", ["a", 1]),
        ("{'a': true, \"b\": null}", {"a": True, "b": None}),
        ("'a\nb'", "a\nb"),
        (r"'\d\n'", "\\d\n"),
        ("[007, -1]", [7, -1]),
    ],
)
def test_read_value_accepts_small_faults(text: str, value: Any) -> None:
    assert read_value(text) == value


def test_read_value_refuses_deep_python_with_brackets_in_strings() -> None:
    assert read_value('["]",' * 128 + "1," + "]" * 128)[0] == "]"
    with pytest.raises(InvalidJsonError) as failure:
        read_value('["]",' * 150 + "1" + "]" * 150)
    assert failure.value.code == "too_deep"


def test_read_value_reads_200000_escaped_quotes_once() -> None:
    with pytest.raises(InvalidJsonError):
        read_value('[{\\"a\\": "' + '\\"' * 200_000 + "]")
    assert read_value("[1, \\\n'\\d', 007]") == [1, "\\d", 7]
