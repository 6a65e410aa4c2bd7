"""Golden numbers of intervals, of the trials that decide, and of the case study's percentiles."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from toolbench.evals import statistics as stats


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(36, 40, 0.7695, 0.9604), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0), (73, 73, 0.95, 1.0)],
)
def test_wilson_intervals_are_those_of_the_textbook(k: int, n: int, low: float, high: float) -> None:
    assert stats.wilson(k, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("n", [1, 7, 40, 1450])
def test_wilson_intervals_are_to_the_last_digit_those_of_scipy(n: int) -> None:
    for k in {0, 1, n // 3, n - 1, n}:
        interval: Any = reference.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert stats.wilson(k, n) == (interval.low, interval.high)


@pytest.mark.parametrize("n", [2, 5, 6, 59, 60, 61, 500])
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_quantiles_and_their_intervals_are_those_of_scipy(n: int, q: float) -> None:
    values = [float(1 + place * place % 97) for place in range(n)]
    found = stats.quantile(values, q)
    interval: Any = reference.quantile_test(values, q=found.value, p=q).confidence_interval(0.95)
    ends = [math.nan if end is None else end for end in (found.low, found.high)]
    assert ends == pytest.approx([interval.low, interval.high], nan_ok=True)
    assert found.value == pytest.approx(float(reference.quantile(values, q)))


def test_an_interval_end_that_needs_more_values_is_left_open() -> None:
    assert stats.quantile([5.0], 0.5) == stats.Quantile(5.0, None, None)
    wide = stats.quantile([float(n) for n in range(1, 101)], 0.5)
    assert (wide.low, wide.value, wide.high) == (40.0, 50.5, 61.0)


def test_where_nothing_was_tried_everything_is_possible() -> None:
    assert stats.wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_a_count_that_cannot_be_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        stats.wilson(k, n)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_lies_inside_its_interval(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = stats.wilson(k, n)
    assert 0 <= low <= k / n + 1e-12
    assert k / n - 1e-12 <= high <= 1


def test_more_trials_at_the_share_seen_would_clear_the_target() -> None:
    more = stats.more_trials_to_clear(38, 40, 0.9)
    assert more is not None
    whole = 40 + more
    assert stats.wilson(round(0.95 * whole) + 1, whole)[0] >= 0.9
    assert stats.wilson(round(0.95 * (whole - 20)), whole - 20)[0] < 0.9


def test_a_share_at_or_under_the_target_never_clears_it() -> None:
    assert stats.more_trials_to_clear(36, 40, 0.9) is None
    assert stats.more_trials_to_clear(0, 0, 0.9) is None


def test_a_share_that_clears_already_needs_no_more() -> None:
    assert stats.more_trials_to_clear(100, 100, 0.9) == 0


@pytest.mark.parametrize("target", [0, 1, 95])
def test_a_target_is_a_fraction_between_0_and_1(target: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        stats.more_trials_to_clear(1, 1, target)


@pytest.mark.parametrize(
    ("count", "q", "index"),
    [
        (1, 95, 0), (4, 95, 3), (10, 95, 9), (20, 95, 19), (21, 95, 19), (40, 95, 38), (50, 95, 47), (100, 95, 95),
        (2, 50, 1), (10, 50, 5), (50, 50, 25),
    ],
)  # fmt: skip
def test_parity_percentiles_take_the_published_index(count: int, q: int, index: int) -> None:
    assert stats.parity_percentile(list(range(count, 0, -1)), q) == index + 1


def test_parity_percentile_of_nothing_is_0() -> None:
    assert stats.parity_percentile([], 95) == 0.0
