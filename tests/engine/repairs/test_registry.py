import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.repairs import REPAIR_NAMES, check_repairs, repair_arguments
from toolbench.engine.repairs.registry import MAX_TEXT_LENGTH
from toolbench.engine.transforms import UnknownTransformError

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
SCALAR = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXTS
OBJECT = st.dictionaries(
    TEXTS, st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3), max_leaves=8), max_size=4
)

CASES: dict[str, list[tuple[str, Any]]] = {
    "nested_encoding": [(json.dumps(json.dumps(json.dumps({"a": 1}))), {"a": 1})],
    "escaped_object": [('{\\"a\\": \\"b\\"}', {"a": "b"}), ('{\\n \\"a\\": \\"x\\\\\\"y\\"}', {"a": 'x"y'})],
    "stray_quotes": [('{}""', {}), ('"{"a": 1}"', {"a": 1}), ('`{"a": 1}`', {"a": 1})],
    "doubled_object": [('{"a":1}{"a":1}', {"a": 1}), ('{}{"a":1}', {"a": 1}), ("{}{}", {})],
    "extra_closers": [('{"a": {"b": 1}}}', {"a": {"b": 1}}), ('{"a": 1}]}', {"a": 1})],
    "text_around_object": [
        ('好的，参数如下：{"city": "北京"}。', {"city": "北京"}),
        ('Here\'s it: {"a": "}"} Done.', {"a": "}"}),
        ('{"a": [1]} as in [2].', {"a": [1]}),
    ],
    "comments": [('{"a": 1, // one\n "b": /* two */ "http://x"}', {"a": 1, "b": "http://x"})],
    "smart_quotes": [("{“城市”: “北京 \"首都\"”}", {"城市": '北京 "首都"'}), ("{‘a’: ‘b’}", {"a": "b"})],
    "single_quotes": [("{'a': 'it\\'s \"x\"'}", {"a": 'it\'s "x"'}), ("{'a': \"it's\"}", {"a": "it's"})],
    "python_literals": [('{"a": True, "b": [False, None], "c": "True"}', {"a": True, "b": [False, None], "c": "True"})],
    "control_characters": [('{"a": "x\ny\tz"}', {"a": "x\ny\tz"})],
    "invalid_escapes": [('{"a": "\\d\\_ \\\' \\x41 \\n"}', {"a": "\\d\\_ ' A \n"})],
    "unquoted_keys": [('{city: "a", größe: 1, "b": [{c: 2}]}', {"city": "a", "größe": 1, "b": [{"c": 2}]})],
    "trailing_commas": [('{"a": [1, 2,], }', {"a": [1, 2]})],
    "missing_closers": [
        ('{"a": {"b": ["x"', {"a": {"b": ["x"]}}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": {"b": true', {"a": {"b": True}}),
    ],
}  # fmt: skip
SINGLE_REPAIRS = [(name, text, value) for name, rows in CASES.items() for text, value in rows]


@pytest.mark.parametrize(("name", "text", "value"), SINGLE_REPAIRS)
def test_each_repair_alone_fixes_its_fault_and_is_recorded(name: str, text: str, value: Any) -> None:
    repaired = repair_arguments(text, [name])
    assert repaired is not None
    assert (repaired.value, repaired.repair_names, repaired.is_truncated) == (value, (name,), False)
    assert json.loads(repaired.text) == value


@pytest.mark.parametrize(("name", "text", "value"), SINGLE_REPAIRS)
def test_all_repairs_together_give_the_same_value(name: str, text: str, value: Any) -> None:
    repaired = repair_arguments(text, REPAIR_NAMES)
    assert repaired is not None
    assert (repaired.value, repaired.is_truncated) == (value, False)


def test_several_faults_record_their_repairs_in_order() -> None:
    repaired = repair_arguments(
        "参数：{'city': '北京', 'days': [1, 2,], 'rain': None", ["single_quotes", "python_literals"]
    )
    assert repaired is None
    repaired = repair_arguments("{'city': '北京', 'days': [1, 2,], 'rain': None}", REPAIR_NAMES)
    assert repaired is not None
    assert repaired.repair_names == ("single_quotes", "python_literals", "trailing_commas")
    assert repaired.value == {"city": "北京", "days": [1, 2], "rain": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"city": "北', {"city": "北"}),
        ('{"n": 12', {"n": 12}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "x",', {"a": "x"}),
        ('{"a":', {"a": None}),
        ('{"a": "x", "b', {"a": "x", "b": None}),
        ('{"a": "x\\', {"a": "x"}),
        ("{'a': 'x", {"a": "x"}),
    ],
)
def test_incomplete_arguments_are_marked_as_truncated(text: str, value: Any) -> None:
    repaired = repair_arguments(text, REPAIR_NAMES)
    assert repaired is not None
    assert (repaired.value, repaired.repair_names[-1], repaired.is_truncated) == (value, "cut_value", True)


def test_added_brackets_in_cut_answer_count_as_truncated() -> None:
    repaired = repair_arguments('{"a": "x"', REPAIR_NAMES, is_truncated=True)
    assert repaired is not None
    assert repaired.is_truncated


@pytest.mark.parametrize(
    "text", ["", "北京今天的天气", "[1, 2]", "null", '{"a": 1}{"a": 2}', '{"a": "he said "hi""}', "{a b}"]
)
def test_ambiguous_or_unreadable_text_is_not_repaired(text: str) -> None:
    assert repair_arguments(text, REPAIR_NAMES) is None


def test_repair_uses_only_given_names_and_ignores_unknown_ones() -> None:
    assert repair_arguments("{'a': 1,}", ["single_quotes"]) is None
    assert repair_arguments('{"a": 1,}', ["no_such_repair", "Trailing-Commas"]) is not None
    assert check_repairs(["no_such_repair", "comments"]) == ("comments",)
    with pytest.raises(UnknownTransformError):
        check_repairs(["no_such_repair"], strict=True)


@given(OBJECT)
def test_valid_json_object_is_not_repaired(value: dict[str, Any]) -> None:
    repaired = repair_arguments(json.dumps(value, ensure_ascii=False), REPAIR_NAMES)
    assert repaired is not None
    assert (repaired.value, repaired.repair_names) == (value, ())


@given(OBJECT)
def test_python_repr_of_an_object_is_repaired(value: dict[str, Any]) -> None:
    repaired = repair_arguments(repr(value), REPAIR_NAMES)
    assert repaired is not None
    assert (repaired.value, repaired.is_truncated) == (value, False)


@given(OBJECT, st.integers(0, 200))
def test_truncated_object_gives_only_values_of_the_original(value: dict[str, Any], end: int) -> None:
    repaired = repair_arguments(json.dumps(value, ensure_ascii=False)[:end], REPAIR_NAMES)
    if repaired is not None and not repaired.is_truncated:
        originals = list(map(json.dumps, _iterate_scalars(value)))
        assert all(json.dumps(item) in originals for item in _iterate_scalars(repaired.value))


def _iterate_scalars(value: Any) -> Iterator[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if items is None:
        yield value
        return
    for item in items:
        yield from _iterate_scalars(item)


@settings(max_examples=300)
@given(st.text(st.sampled_from("{}[]:,'\"“”‘’\\/*#\n \tabTrue1.0-北") | st.characters(), max_size=60))
def test_repair_of_any_text_returns_none_or_json(text: str) -> None:
    repaired = repair_arguments(text, REPAIR_NAMES)
    assert repaired is None or json.loads(repaired.text) == repaired.value


@pytest.mark.parametrize(
    "piece", ["{", '{"a":', "[", '"', "'", "“", "\\", "/*", "//", "{}", "/", '{"a":1}', "{'", ",", '\\"', "'\\"]
)
def test_repair_of_long_repetition_returns_none_or_json(piece: str) -> None:
    text = "{" + piece * (16_000 // len(piece))
    repaired = repair_arguments(text, REPAIR_NAMES)
    assert repaired is None or json.loads(repaired.text) == repaired.value


def test_too_long_text_is_not_repaired() -> None:
    assert repair_arguments('{"a": "' + "x" * MAX_TEXT_LENGTH + '",}', REPAIR_NAMES) is None


def test_text_of_65536_characters_is_repaired() -> None:
    length = 65_536 - len('{"a": "",}')
    repaired = repair_arguments('{"a": "' + "x" * length + '",}', ["trailing_commas"])
    assert repaired is not None
    assert repaired.repair_names == ("trailing_commas",)
    assert repair_arguments('{"a": "' + "x" * (length + 1) + '",}', ["trailing_commas"]) is None


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("{größe: 1}", "unquoted_keys", '{"größe": 1}'),
        (r'{"a": "\u0041 \d"}', "invalid_escapes", r'{"a": "\u0041 \\d"}'),
        (r'{"a": "\user"}', "invalid_escapes", r'{"a": "\\user"}'),
        (r'{"a": "\u12"}', "invalid_escapes", r'{"a": "\\u12"}'),
        (r'{"a": "\xe9\U0001F600"}', "invalid_escapes", r'{"a": "\u00e9\ud83d\ude00"}'),
    ],
)
def test_repair_keeps_valid_parts_unchanged(text: str, name: str, expected: str) -> None:
    repaired = repair_arguments(text, [name])
    assert repaired is not None
    assert repaired.text == expected


@pytest.mark.parametrize(("levels", "is_repaired"), [(4, True), (5, False)])
def test_nested_encodings_are_decoded_up_to_four_levels(levels: int, is_repaired: bool) -> None:
    text = '{"a": 1}'
    for _ in range(levels):
        text = json.dumps(text)
    assert (repair_arguments(text, ["nested_encoding"]) is not None) == is_repaired


@pytest.mark.parametrize(
    ("text", "is_repaired"),
    [
        ('{"a": 1 /**/}', True),
        ('{"a": 1 /***/}', True),
        ('{"a": 1} /*/', False),
        ('{"a": 1} /*', False),
        ('{"a": 1} // done', False),
        ('{"a": 1 // one\n}', True),
    ],
)
def test_comment_is_removed_only_if_it_has_an_end(text: str, is_repaired: bool) -> None:
    repaired = repair_arguments(text, ["comments"])
    assert (repaired is not None) == is_repaired
    assert repaired is None or (repaired.value, repaired.repair_names) == ({"a": 1}, ("comments",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "x\"', {"a": 'x"'}),
        (r'{"a": "x\\', {"a": "x\\"}),
        (r'{"a": "x\\\"', {"a": 'x\\"'}),
        (r'{"a": "\"', {"a": '"'}),
        ('{"a": "', {"a": ""}),
        ("{'a': '", {"a": ""}),
        ("{'a': 'x", {"a": "x"}),
        ('{"a": ["x", "y', {"a": ["x", "y"]}),
    ],
)
def test_unclosed_string_is_closed_at_its_end(text: str, value: Any) -> None:
    repaired = repair_arguments(text, ["single_quotes", "missing_closers", "cut_value"])
    assert repaired is not None
    assert (repaired.value, repaired.is_truncated) == (value, True)


def test_doubled_object_repair_is_not_recorded_for_one_object() -> None:
    repaired = repair_arguments('{\\"a\\": 1,}\\n', ["escaped_object", "doubled_object", "trailing_commas"])
    assert repaired is not None
    assert repaired.repair_names == ("escaped_object", "trailing_commas")


def test_escaped_object_with_line_breaks_is_repaired() -> None:
    repaired = repair_arguments('{\\"a\\": 1,\n\\"b\\": 2}', ["escaped_object"])
    assert repaired is not None
    assert repaired.value == {"a": 1, "b": 2}
