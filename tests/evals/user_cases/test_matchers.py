from typing import Any

import pytest

from toolbench.evals.user_cases.matchers import is_same_json, iter_matcher_problems, iter_mismatches


def says(wanted: Any, given: Any) -> list[tuple[str, str]]:
    return [(mismatch.path, mismatch.message) for mismatch in iter_mismatches(wanted, given)]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [(1, 1.0, True), (True, 1, False), (0, False, False), ("1", 1, False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True)],
)
def test_equality_is_jsons(one: Any, other: Any, equal: bool) -> None:
    assert is_same_json(one, other) is equal
    assert (says(one, other) == []) is equal


def test_what_differs_is_named_by_its_path() -> None:
    assert says({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == [("$.a[0].b", "2 instead of 1")]
    assert says({"a": 1}, {"b": 1}) == [("$.a", "missing"), ("$.b", "was not asked for")]
    assert says([1], [1, 2]) == [("$", "2 items instead of 1")]


def test_any_of_takes_each_of_its_values() -> None:
    assert not says({"$any_of": ["C", "F"]}, "F")
    assert says({"$any_of": ["C", "F"]}, "K") == [("$", '"K" is none of ["C", "F"]')]


def test_a_subset_may_have_more_and_a_type_any_value() -> None:
    assert not says({"$subset": {"a": {"$type": "integer"}}}, {"a": 3.0, "b": 1})
    assert says({"$type": ["string", "null"]}, True) == [("$", "true or false instead of string or null")]


def test_exact_takes_what_looks_like_a_matcher_as_it_stands() -> None:
    assert not says({"$exact": {"$type": "string"}}, {"$type": "string"})


def test_what_is_optional_may_be_missing_and_may_not_be_wrong() -> None:
    wanted = {"unit": {"$any_of": ["C"], "$optional": True}}
    assert not says(wanted, {})
    assert says(wanted, {"unit": "K"})


@pytest.mark.parametrize(
    "wanted",
    [{"$any_of": []}, {"$any_of": "C"}, {"$type": "text"}, {"$subset": 1}, {"$type": "null", "x": 1}, {"$optional": 1}],
)
def test_a_matcher_that_is_written_wrongly_is_said(wanted: Any) -> None:
    assert list(iter_matcher_problems({"a": [wanted]}))
