"""Tests of anytime-valid intervals: definition, exact coverage by counting paths, and width."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from toolbench.evals.statistics import compute_wilson_interval
from toolbench.evals.statistics.sequential import compute_anytime_interval, compute_anytime_mean_interval


@st.composite
def draw_counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 500))
    return draw(st.integers(0, n)), n


@given(draw_counts(), st.sampled_from([0.01, 0.05, 0.2]))
def test_compute_anytime_interval_ends_at_likelihood_ratio_of_the_error(count: tuple[int, int], error: float) -> None:
    k, n = count
    mixture = betabinom.pmf(k, n, 0.5, 0.5)
    for p in compute_anytime_interval(k, n, error):
        if 0 < p < 1:
            assert mixture / binom.pmf(k, n, p) == pytest.approx(1 / error, rel=1e-6)


@given(draw_counts())
def test_compute_anytime_interval_contains_share_and_is_wider_than_wilson(count: tuple[int, int]) -> None:
    k, n = count
    low, high = compute_anytime_interval(k, n, 0.05)
    assert low <= k / n <= high
    if n >= 10:
        wilson = compute_wilson_interval(k, n)
        assert high - low > wilson[1] - wilson[0]


@given(draw_counts())
def test_compute_anytime_mean_interval_is_wider_than_that_of_one_rate(count: tuple[int, int]) -> None:
    k, n = count
    low, high = compute_anytime_mean_interval(k, n, 0.05)
    assert 0 <= low <= k / n <= high <= 1
    if n >= 40 and k / n >= 0.8:
        assert low < compute_anytime_interval(k, n, 0.05)[0]


def test_compute_anytime_interval_without_trials_is_0_to_1() -> None:
    assert compute_anytime_interval(0, 0, 0.05) == compute_anytime_mean_interval(0, 0, 0.05) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n", "error"), [(3, 2, 0.05), (-1, 2, 0.05), (1, 2, 0.0), (1, 2, 1.0)])
def test_compute_anytime_interval_refuses_impossible_counts_and_errors(k: int, n: int, error: float) -> None:
    with pytest.raises(ValueError, match=r"no rate|an error is"):
        compute_anytime_interval(k, n, error)
    with pytest.raises(ValueError, match=r"no rate|an error is"):
        compute_anytime_mean_interval(k, n, error)


@pytest.mark.parametrize("p", [0.5, 0.7, 0.9, 0.975])
def test_compute_anytime_interval_ever_misses_at_most_as_stated(p: float) -> None:
    """Sum the paths over 100 interim analyses exactly; the Wilson interval, analysed as often, errs far more often."""
    assert _compute_ever_excluded(p, lambda k, n: compute_anytime_interval(k, n, 0.05)) <= 0.05
    assert _compute_ever_excluded(p, compute_wilson_interval) > 0.15


def _compute_ever_excluded(p: float, interval: Callable[[int, int], tuple[float, float]]) -> float:
    """Return the probability that the interval after any of the first 100 trials excludes p."""
    inside, missed = np.array([1.0]), 0.0
    for n in range(1, 101):
        inside = np.append(inside * (1 - p), 0) + np.append(0, inside * p)
        ends = [interval(k, n) if inside[k] > 1e-15 else (0.0, 1.0) for k in range(n + 1)]
        outside = np.array([not low <= p <= high for low, high in ends])
        missed += float(inside[outside].sum())
        inside = np.where(outside, 0, inside)
    return missed


@given(draw_counts(), st.sampled_from([1e-13, 0.05, 0.5]))
def test_compute_anytime_interval_treats_passes_and_failures_alike(count: tuple[int, int], error: float) -> None:
    k, n = count
    for interval in (compute_anytime_interval, compute_anytime_mean_interval):
        low, high = interval(k, n, error)
        assert interval(n - k, n, error) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 200])
def test_compute_anytime_interval_of_all_or_none_reaches_1_or_0(n: int) -> None:
    assert compute_anytime_interval(n, n, 0.05)[1] == compute_anytime_mean_interval(n, n, 0.05)[1] == 1.0
    assert compute_anytime_interval(0, n, 0.05)[0] == compute_anytime_mean_interval(0, n, 0.05)[0] == 0.0
    assert 0 < compute_anytime_interval(n, n, 0.05)[0] < 1
    assert 0 < compute_anytime_interval(0, n, 0.05)[1] < 1


@pytest.mark.parametrize(("error", "excluded"), [(1e-13, False), (1.2e-12, False), (3.3e-12, True)])
def test_compute_anytime_interval_end_within_1e_12_is_0_or_1(error: float, excluded: bool) -> None:
    """At k = n = 1 the mixture is 1/2, so p is excluded below error/2."""
    low, high = compute_anytime_interval(1, 1, error)[0], compute_anytime_interval(0, 1, error)[1]
    assert (low > 0, high < 1) == (excluded, excluded)


@pytest.mark.parametrize(("k", "n", "error"), [(30, 40, 0.05), (200, 400, 0.01), (5, 8, 0.2)])
def test_compute_anytime_mean_interval_has_robbins_boundary(k: int, n: int, error: float) -> None:
    """The two-sided normal mixture of Howard et al. (2021), equation 14, with variance 1/4 a trial and rho = 2."""
    variance = n / 4 + 2
    half = math.sqrt(2 * variance * math.log(math.sqrt(variance / 2) / error)) / n
    assert compute_anytime_mean_interval(k, n, error) == pytest.approx((max(0.0, k / n - half), min(1.0, k / n + half)))
