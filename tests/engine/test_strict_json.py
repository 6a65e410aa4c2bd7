import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import (
    MAX_DEPTH,
    count_utf8_bytes,
    encode_json,
    encode_object,
    is_too_deep,
    read_json,
    sort_keys,
    write_json,
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NaN", "not_json"),
        ("[Infinity]", "not_json"),
        ("1e400", "not_json"),
        ("9" * 5000, "not_json"),
        ("[" * 100_000, "too_deep"),
        ("[" * 300 + "]" * 300, "too_deep"),
        ("{} {}", "not_json"),
        ("", "not_json"),
        ('"\x00"', "not_json"),
    ],
)
def test_read_json_invalid_text_raises_error_with_code(text: str, code: str) -> None:
    with pytest.raises(InvalidJsonError) as caught:
        read_json(text)
    assert caught.value.code == code
    assert len(str(caught.value)) <= 200


def test_read_json_allows_max_depth_and_refuses_one_more() -> None:
    assert not is_too_deep(read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH))
    with pytest.raises(InvalidJsonError):
        read_json("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


def test_read_json_ignores_brackets_in_strings() -> None:
    assert read_json(json.dumps("[" * 1000)) == "[" * 1000


def test_encode_json_escapes_lone_surrogates_so_read_json_restores_them() -> None:
    value = {"text": "a\ud800é"}
    assert b"\\ud800" in encode_json(value)
    assert read_json(encode_json(value).decode()) == value


def test_encode_json_writes_other_text_as_utf8() -> None:
    assert encode_json({"a": "é"}) == '{"a":"é"}'.encode()


def test_sort_keys_sorts_every_level() -> None:
    assert write_json(sort_keys({"b": {"d": 1, "c": 2}, "a": [3]})) == '{"a":[3],"b":{"c":2,"d":1}}'


@settings(deadline=None, database=None)
@given(st.text())
def test_count_utf8_bytes_equals_encoded_length(text: str) -> None:
    assert count_utf8_bytes(text) == len(text.encode("utf-8", "surrogatepass"))


@settings(deadline=None, database=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_read_json_restores_what_encode_json_wrote(value: object) -> None:
    assert read_json(encode_json(value).decode()) == value


@settings(deadline=None, database=None, max_examples=50)
@given(
    st.dictionaries(st.text(max_size=3), st.text(st.characters(), max_size=3) | st.lists(st.integers(), max_size=2)),
    st.data(),
)
def test_encode_object_with_known_parts_equals_encode_json(value: dict[str, object], data: st.DataObject) -> None:
    known = data.draw(st.sets(st.sampled_from(sorted(value)))) if value else set()
    assert encode_object(value, {key: write_json(value[key]) for key in known}) == encode_json(value)
