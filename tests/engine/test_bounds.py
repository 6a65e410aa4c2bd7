from datetime import datetime
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.bounds import (
    MAX_COST_USD,
    MAX_DURATION_MS,
    MAX_TOKENS,
    filter_valid_date,
    parse_cost,
    parse_count,
    parse_duration_ms,
)

ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers())
INVALID_FIGURES: tuple[Any, ...] = (-1, nan, inf, -inf, 10**30, -(10**4000), 10**4000, 1e308, True, "7", None, [1], {})


@pytest.mark.parametrize(("given_value", "expected"), [(0, 0), (12.0, 12), (MAX_TOKENS, MAX_TOKENS), (-0.0, 0)])
def test_parse_count_within_bounds_returns_int(given_value: float, expected: int) -> None:
    assert parse_count(given_value) == expected
    assert isinstance(parse_count(given_value), int)


@pytest.mark.parametrize("value", [*INVALID_FIGURES, MAX_TOKENS + 1, 0.5])
def test_parse_count_invalid_value_returns_none(value: Any) -> None:
    assert parse_count(value) is None


@pytest.mark.parametrize("value", [*INVALID_FIGURES, MAX_COST_USD * 1.001])
def test_parse_cost_invalid_value_returns_none(value: Any) -> None:
    assert parse_cost(value) is None


@pytest.mark.parametrize("value", [*INVALID_FIGURES, MAX_DURATION_MS + 1])
def test_parse_duration_ms_invalid_value_returns_none(value: Any) -> None:
    assert parse_duration_ms(value) is None


def test_parse_duration_ms_of_seconds_is_limited_in_milliseconds() -> None:
    week_seconds = MAX_DURATION_MS / 1000
    assert (parse_duration_ms(1.5, ms_per_unit=1000), parse_duration_ms(week_seconds, ms_per_unit=1000)) == (
        1500,
        MAX_DURATION_MS,
    )
    assert parse_duration_ms(week_seconds + 1, ms_per_unit=1000) is None


@given(ANYTHING)
def test_parsed_figures_of_any_value_have_a_bounded_sum(value: Any) -> None:
    for known in (parse_count(value), parse_cost(value), parse_duration_ms(value)):
        assert known is None or 0 <= known * 10**9 <= 2**63


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59+00:00", "2026-01-01T00:00:00"],
)
def test_filter_valid_date_naive_or_out_of_range_returns_none(text: str) -> None:
    assert filter_valid_date(datetime.fromisoformat(text)) is None
    kept = datetime.fromisoformat("2026-11-22T10:00:00+05:30")
    assert filter_valid_date(kept) is kept
