"""Sentences for pydantic's errors: numbers and plurals."""

from typing import Any

import pytest

from toolbench.api.sentences import describe_error


@pytest.mark.parametrize(
    ("kind", "context", "sentence"),
    [
        ("too_short", {"min_length": 1, "actual_length": 0}, "Give names at least 1 item."),
        ("too_long", {"max_length": 2_000, "actual_length": 2_001}, "Give names at most 2,000 items."),
        ("string_too_short", {"min_length": 1}, "Give names at least 1 character."),
        ("string_too_long", {"max_length": 80}, "Shorten names to 80 characters."),
        ("less_than_equal", {"le": 86_400.0}, "Give names as 86,400 or less."),
        ("less_than_equal", {"le": 2**63 - 1}, "Give names as 9,223,372,036,854,775,807 or less."),
        ("greater_than_equal", {"ge": 0.001}, "Give names as 0.001 or more."),
        ("literal_error", {"expected": "'a' or 'b'"}, "Give names as one of 'a' or 'b'."),
    ],
)
def test_sentence_of_error_has_readable_limits(kind: str, context: dict[str, Any], sentence: str) -> None:
    assert describe_error({"loc": ("body", "body", "names"), "type": kind, "ctx": context}) == sentence
