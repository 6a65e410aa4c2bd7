import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.arguments import INVALID_JSON, measure_arguments, read_arguments
from toolbench.engine.strict_json import write_json

GOLDEN = json.loads((Path(__file__).parent / "data" / "arguments.json").read_text())


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["name"])
def test_read_arguments_matches_golden_table(row: dict[str, Any]) -> None:
    read = read_arguments(row["raw"], row["max"])
    assert read.status == row["status"], read
    assert read.arguments == row.get("arguments")
    assert read.size_bytes == row.get("size", read.size_bytes)
    assert bool(read.problem) == (read.status != "ok")


def test_read_arguments_measures_inner_text_of_double_encoding() -> None:
    inner = json.dumps({"a": "é" * 20}, ensure_ascii=False)
    outer = json.dumps(inner, ensure_ascii=False)
    size = len(inner.encode())
    assert read_arguments(outer, len(outer.encode())).status == "ok"
    assert read_arguments(outer, len(outer.encode())).size_bytes == size


@pytest.mark.parametrize(
    "raw",
    ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, '{"a":' + "9" * 5000 + "}", float("nan"), {"a": float("inf")}],
    ids=["brackets", "deep", "digits", "nan", "infinity"],
)
def test_read_arguments_hostile_value_is_invalid_without_exception(raw: object) -> None:
    assert read_arguments(raw, 200_000).status == INVALID_JSON


def test_read_arguments_lone_surrogate_counts_three_bytes() -> None:
    assert read_arguments('{"a":"\ud800"}', 11).size_bytes == 11
    assert read_arguments('{"a":"\ud800"}', 10).status == "too_large"


def test_read_arguments_leaves_its_argument_unchanged() -> None:
    raw = {"a": {"b": [1]}}
    read_arguments(raw, 300)
    assert raw == {"a": {"b": [1]}}


@pytest.mark.parametrize("row", [row for row in GOLDEN if "size" in row], ids=lambda row: row["name"])
def test_measure_arguments_returns_size_of_golden_table(row: dict[str, Any]) -> None:
    if row["name"] != "double encoding":
        assert measure_arguments(row["raw"]) == row["size"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_read_arguments_gives_same_object_for_every_wrapping(value: dict[str, object]) -> None:
    text = json.dumps(value)
    for raw in (value, text, f"\n {text} ", f"```json\n{text}\n```", f"```{text}```", json.dumps(text)):
        assert read_arguments(raw, 200_000).arguments == value


@given(st.text(st.sampled_from('{}[]",:\\`1e-a\ud800é\n tnf'), max_size=40) | st.text(max_size=40))
def test_read_arguments_any_text_gives_writable_object_or_status(raw: str) -> None:
    read = read_arguments(raw, 200_000)
    assert (read.arguments is None) == (read.status != "ok")
    assert write_json(read.arguments)


@pytest.mark.parametrize("raw", [7, 1.5, True, object(), b"{}"])
def test_read_arguments_other_type_is_invalid_with_size_zero(raw: object) -> None:
    read = read_arguments(raw, 300)
    assert (read.status, read.size_bytes, measure_arguments(raw)) == (INVALID_JSON, 0, 0)
    assert type(raw).__name__ in read.problem


def test_read_arguments_unwritable_value_gives_problem_of_200_characters() -> None:
    unwritable = type("L" * 300, (), {})()
    read = read_arguments({"a": unwritable}, 300)
    assert (read.status, read.size_bytes, len(read.problem)) == (INVALID_JSON, 0, 200)


def build_nested_object(levels: int) -> dict[str, object]:
    """Return an object in which objects and arrays alternate, `levels` deep."""
    value: dict[str, object] | list[object] = {}
    for level in range(levels - 1):
        value = [value] if level % 2 == levels % 2 else {"a": value}
    return value if isinstance(value, dict) else {"a": value}


def test_read_arguments_too_deep_value_is_invalid_with_size_zero() -> None:
    read = read_arguments(build_nested_object(140), 200_000)
    assert (read.status, read.size_bytes) == (INVALID_JSON, 0)
    assert read.problem == "arguments are nested too deeply"


def test_read_arguments_wide_value_is_not_too_deep() -> None:
    wide: dict[str, object] = {"a": [{} for _ in range(200)]}
    assert read_arguments(wide, 200_000).arguments == wide


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("``````", "ok"),
        ("```json```", "ok"),
        ("```", INVALID_JSON),
        ("`````", INVALID_JSON),
        ('```json{"a":1}```', "ok"),
    ],
)
def test_read_arguments_removes_only_fence_with_both_ends(raw: str, status: str) -> None:
    assert read_arguments(raw, 300).status == status


def test_read_arguments_with_parsed_value_measures_without_parsing() -> None:
    raw, value = '{"a":"é"}', {"a": "é"}
    read = read_arguments(raw, 10, parsed_value=value)
    assert (read.status, read.size_bytes) == ("ok", 10)
    assert read.arguments is value
    over = read_arguments(raw, 9, parsed_value=value)
    assert (over.status, over.size_bytes, over.arguments) == ("too_large", 10, None)


@pytest.mark.parametrize(
    ("raw", "max_bytes", "status", "size"),
    [
        ('{"a":1}', 7, "ok", 7), ('{"a":1}', 6, "too_large", 7), (' {"a":1} ', 7, "ok", 7),
        ("", 7, INVALID_JSON, 0), ("  ", 7, INVALID_JSON, 0), ({"a": 1}, 7, INVALID_JSON, 0),
        (None, 7, INVALID_JSON, 0), ("[1]", 7, INVALID_JSON, 3), ("{", 7, INVALID_JSON, 1),
    ],
)  # fmt: skip
def test_read_arguments_standard_only_accepts_only_object_text(
    raw: object, max_bytes: int, status: str, size: int
) -> None:
    read = read_arguments(raw, max_bytes, is_standard_only=True)
    assert (read.status, read.size_bytes) == (status, size)
    assert read.arguments == ({"a": 1} if status == "ok" else None)
