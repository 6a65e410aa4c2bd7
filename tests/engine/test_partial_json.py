import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.partial_json import JsonEndFinder, read_partial

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("7", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a":', {}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": tr', {}),
        ('{"a": "wor', {"a": "wor"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ('{"a": "x\\\\', {"a": "x\\"}),
        ('{"a": "x\\\\u00', {"a": "x\\u00"}),
        ('{"a": "x\\\\\\u00', {"a": "x\\"}),
        ('{"ops": [{"op": "add"}, {"op": "re', {"ops": [{"op": "add"}, {"op": "re"}]}),
        ('{"a": "b,c{', {"a": "b,c{"}),
        ('{"a": 1}', {"a": 1}),
        ("[1, 2,", [1, 2]),
        ("[" * 500, None),
    ],
)
def test_a_beginning_is_read_as_far_as_it_goes(text: str, value: object) -> None:
    assert read_partial(text) == value


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(0, 200))
def test_no_beginning_of_json_is_beyond_reading(value: object, place: int) -> None:
    text = json.dumps(value)
    assert read_partial(text) == value
    beginning = text[: 1 + place % len(text)]
    assert type(read_partial(beginning)) is type(value)


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(1, 5))
def test_the_end_of_a_value_is_known_however_it_is_split(value: object, size: int) -> None:
    text, extent = json.dumps(value), JsonEndFinder()
    for at in range(0, len(text), size):
        assert not extent.is_closed
        extent.feed(text[at : at + size])
    assert extent.is_closed
