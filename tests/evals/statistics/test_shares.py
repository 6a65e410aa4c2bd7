"""Tests of intervals of a share, and of the number of trials that reaches a target, against known values."""

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
def test_compute_wilson_interval_is_that_of_the_textbook(k: int, n: int, low: float, high: float) -> None:
    assert stats.compute_wilson_interval(k, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("n", [1, 7, 40, 1450])
def test_compute_wilson_interval_is_exactly_that_of_scipy(n: int) -> None:
    for k in {0, 1, n // 3, n - 1, n}:
        interval: Any = reference.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert stats.compute_wilson_interval(k, n) == (interval.low, interval.high)


def test_compute_wilson_interval_without_trials_is_0_to_1() -> None:
    assert stats.compute_wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_compute_wilson_interval_refuses_an_impossible_count(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        stats.compute_wilson_interval(k, n)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_compute_wilson_interval_contains_the_share(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = stats.compute_wilson_interval(k, n)
    assert 0 <= low <= k / n + 1e-12
    assert k / n - 1e-12 <= high <= 1


def test_count_more_trials_to_reach_target_at_this_share_reaches_it() -> None:
    more = stats.count_more_trials_to_reach_target(38, 40, 0.9)
    assert more is not None
    total = 40 + more
    assert stats.compute_wilson_interval(round(0.95 * total) + 1, total)[0] >= 0.9
    assert stats.compute_wilson_interval(round(0.95 * (total - 20)), total - 20)[0] < 0.9


def test_count_more_trials_to_reach_target_at_or_below_it_is_none() -> None:
    assert stats.count_more_trials_to_reach_target(36, 40, 0.9) is None
    assert stats.count_more_trials_to_reach_target(0, 0, 0.9) is None


def test_count_more_trials_to_reach_target_is_0_if_reached() -> None:
    assert stats.count_more_trials_to_reach_target(100, 100, 0.9) == 0


@pytest.mark.parametrize("target", [0, 1, 95])
def test_count_more_trials_to_reach_target_must_be_a_fraction(target: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        stats.count_more_trials_to_reach_target(1, 1, target)


@pytest.mark.parametrize("n", [1, 7, 40, 1450])
def test_compute_exact_interval_is_that_of_scipy(n: int) -> None:
    for k in {0, 1, n // 3, n - 1, n}:
        interval: Any = reference.binomtest(k, n).proportion_ci(0.95, method="exact")
        assert stats.compute_exact_interval(k, n) == pytest.approx((interval.low, interval.high))


def test_compute_exact_interval_accepts_effective_counts() -> None:
    low, high = stats.compute_exact_interval(4.5, 5.0)
    assert 0 < low < 0.9 < high < 1
    assert stats.compute_exact_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="is no rate"):
        stats.compute_exact_interval(2, 1)


@pytest.mark.parametrize("k", [-0.5, -1, 10.5])
def test_compute_exact_interval_refuses_an_impossible_count(k: float) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        stats.compute_exact_interval(k, 10)
