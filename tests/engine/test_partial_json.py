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
def test_read_partial_returns_readable_part(text: str, value: object) -> None:
    assert read_partial(text) == value


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(0, 200))
def test_read_partial_of_any_prefix_keeps_the_type(value: object, offset: int) -> None:
    text = json.dumps(value)
    assert read_partial(text) == value
    prefix = text[: 1 + offset % len(text)]
    assert type(read_partial(prefix)) is type(value)


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(1, 5))
def test_json_end_finder_closes_only_at_the_end_for_any_chunks(value: object, size: int) -> None:
    text, finder = json.dumps(value), JsonEndFinder()
    for at in range(0, len(text), size):
        assert not finder.is_closed
        finder.feed(text[at : at + size])
    assert finder.is_closed
