from typing import Any

import pytest

from toolbench.evals.user_cases.matchers import is_same_json, iter_matcher_problems, iter_mismatches


def list_mismatches(expected: Any, given: Any) -> list[tuple[str, str]]:
    return [(mismatch.path, mismatch.message) for mismatch in iter_mismatches(expected, given)]


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [(1, 1.0, True), (True, 1, False), (0, False, False), ("1", 1, False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True)],
)
def test_is_same_json_compares_as_json_does(first: Any, second: Any, equal: bool) -> None:
    assert is_same_json(first, second) is equal
    assert (list_mismatches(first, second) == []) is equal


def test_iter_mismatches_names_the_path_of_each_difference() -> None:
    assert list_mismatches({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == [("$.a[0].b", "2 instead of 1")]
    assert list_mismatches({"a": 1}, {"b": 1}) == [("$.a", "missing"), ("$.b", "not expected")]
    assert list_mismatches([1], [1, 2]) == [("$", "2 items instead of 1")]


def test_iter_mismatches_any_of_accepts_each_of_its_values() -> None:
    assert not list_mismatches({"$any_of": ["C", "F"]}, "F")
    assert list_mismatches({"$any_of": ["C", "F"]}, "K") == [("$", '"K" is none of ["C", "F"]')]


def test_iter_mismatches_subset_allows_more_and_type_any_value() -> None:
    assert not list_mismatches({"$subset": {"a": {"$type": "integer"}}}, {"a": 3.0, "b": 1})
    assert list_mismatches({"$type": ["string", "null"]}, True) == [("$", "true or false instead of string or null")]


@pytest.mark.parametrize(
    ("given", "is_integer"),
    [pytest.param(10**400, True, id="400 digits"), (3.0, True), (3.5, False), (float("inf"), False)],
)
def test_iter_mismatches_type_integer_accepts_whole_numbers_of_any_size(given: float, is_integer: bool) -> None:
    assert (list_mismatches({"$type": "integer"}, given) == []) is is_integer


def test_iter_mismatches_exact_takes_a_matcher_literally() -> None:
    assert not list_mismatches({"$exact": {"$type": "string"}}, {"$type": "string"})


def test_iter_mismatches_optional_may_be_missing_but_not_wrong() -> None:
    expected = {"unit": {"$any_of": ["C"], "$optional": True}}
    assert not list_mismatches(expected, {})
    assert list_mismatches(expected, {"unit": "K"})


@pytest.mark.parametrize(
    "expected",
    [
        *({"$any_of": []}, {"$any_of": "C"}, {"$subset": 1}, {"$type": "null", "x": 1}, {"$optional": 1}),
        *({"$type": "text"}, {"$type": [["string"]]}, {"$type": [{}]}, {"$type": []}),
    ],
)
def test_iter_matcher_problems_reports_an_invalid_matcher(expected: Any) -> None:
    assert list(iter_matcher_problems({"a": [expected]}))
