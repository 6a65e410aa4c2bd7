"""Tests of differences of shares: agreement of test and interval, Bonferroni's correction, and coverage."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as reference

from toolbench.evals.statistics.differences import (
    ALPHA,
    Difference,
    Stratum,
    compute_difference,
    compute_exact_p,
    reconcile_interval_with_test,
)

RATES = (0.002, 0.01, 0.05, *(0.1 * tenth for tenth in range(1, 10)), 0.95, 0.99, 0.998)


@st.composite
def tables(draw: st.DrawFn) -> list[Stratum]:
    """Draw one to five strata of up to 40 trials a side."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=5))
    return [Stratum(draw(st.integers(0, a)), a, draw(st.integers(0, b)), b) for a, b in sizes]


@given(tables(), st.integers(1, 40))
def test_compute_difference_verdict_p_and_interval_agree(strata: list[Stratum], comparisons: int) -> None:
    alone = compute_difference(strata)
    assert alone is not None
    for found in (alone, alone.with_comparisons(comparisons)):
        assert found.is_significant == (not found.low <= 0 <= found.high) == (found.p <= ALPHA)
        assert found.low <= found.value <= found.high
    assert found.low <= alone.low <= alone.high <= found.high
    assert found.p >= alone.p


@pytest.mark.parametrize("counts", [(36, 40, 40, 40), (28, 40, 38, 40), (2, 10, 9, 10), (3, 7, 5, 9), (1, 50, 49, 60)])
def test_compute_difference_of_one_stratum_is_fishers_test(counts: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = counts
    found = compute_difference([Stratum(*counts)])
    assert found is not None
    assert found.p == pytest.approx(float(reference.fisher_exact(np.array([[k1, n1 - k1], [k2, n2 - k2]])).pvalue))


@pytest.mark.parametrize("n", [10, 20, 30])
def test_compute_difference_equal_sizes_rarely_need_p_of_the_limits(n: int) -> None:
    """Fisher's test and the exact limits exclude 0 in the same tables except one in a hundred, and where the test does
    not reject, the interval never has to be extended."""
    tables = list(product(range(n + 1), range(n + 1), (1, 4, 12)))
    found = [_compute_adjusted(Stratum(k1, n, k2, n), comparisons) for k1, k2, comparisons in tables]
    assert sum(item.unadjusted_p_value != item.test_p_value for item in found) <= len(tables) / 100
    assert not any(0 in (item.low, item.high) for item in found)


def test_compute_difference_limits_around_0_overrule_the_test() -> None:
    found = _compute_adjusted(Stratum(9, 30, 21, 30), 12)
    assert found.test_p_value <= ALPHA / 12 < found.unadjusted_p_value
    assert found.low <= 0
    assert not found.is_significant


@pytest.mark.parametrize(("n1", "n2"), [(10, 10), (8, 30), (40, 40)])
@pytest.mark.parametrize("comparisons", [1, 4, 20])
def test_compute_difference_interval_misses_at_most_as_stated(n1: int, n2: int, comparisons: int) -> None:
    """Enumerate every possible outcome at many pairs of rates, also near 0 and 1."""
    ends = {(i, j): _compute_ends(Stratum(i, n1, j, n2), comparisons) for i in range(n1 + 1) for j in range(n2 + 1)}
    low, high = (np.array([[ends[i, j][end] for j in range(n2 + 1)] for i in range(n1 + 1)]) for end in (0, 1))
    for first, second in product(RATES, repeat=2):
        chance = np.outer(_compute_probabilities(n1, first), _compute_probabilities(n2, second))
        missed = (low > second - first + 1e-12) | (high < second - first - 1e-12)
        assert chance[missed].sum() <= ALPHA / comparisons


@pytest.mark.parametrize("comparisons", [4, 12])
def test_with_comparisons_intervals_of_a_family_cover_together(comparisons: int) -> None:
    """Simulate 800 seeded families of different rates and sizes."""
    random = np.random.default_rng(20_261_122)
    missed = 0
    for _ in range(800):
        rates = random.choice(RATES, size=(comparisons, 2))
        sizes = random.choice([10, 20, 40], size=(comparisons, 2))
        passed = random.binomial(sizes, rates)
        differences = (rates[:, 1] - rates[:, 0]).tolist()
        intervals = [
            _compute_ends(Stratum(k[0], n[0], k[1], n[1]), comparisons)
            for k, n in zip(passed.tolist(), sizes.tolist(), strict=True)
        ]
        missed += any(not low <= true <= high for (low, high), true in zip(intervals, differences, strict=True))
    assert missed / 800 <= ALPHA


def test_compute_difference_of_unequal_strata_misses_at_most_as_stated() -> None:
    """Simulate 2,000 seeded comparisons of four scenarios between 50 and 99 %: too many outcomes to enumerate."""
    random = np.random.default_rng(11)
    first, second = np.array([0.99, 0.9, 0.7, 0.5]), np.array([0.95, 0.95, 0.8, 0.6])
    missed = 0
    for _ in range(2_000):
        k1, k2 = random.binomial(10, first).tolist(), random.binomial(10, second).tolist()
        found = compute_difference([Stratum(a, 10, b, 10) for a, b in zip(k1, k2, strict=True)])
        missed += found is None or not found.low <= float(np.mean(second - first)) <= found.high
    assert missed / 2_000 <= ALPHA


def _compute_adjusted(stratum: Stratum, comparisons: int) -> Difference:
    found = compute_difference([stratum])
    assert found is not None
    return found.with_comparisons(comparisons)


def _compute_ends(stratum: Stratum, comparisons: int) -> tuple[float, float]:
    found = _compute_adjusted(stratum, comparisons)
    return found.low, found.high


def _compute_probabilities(n: int, rate: float) -> NDArray[np.float64]:
    return np.asarray(reference.binom.pmf(np.arange(n + 1), n, rate))


def test_compute_difference_of_equal_strata_is_that_of_their_sum() -> None:
    parts, whole = compute_difference([Stratum(10, 10, 10, 10)] * 4), compute_difference([Stratum(40, 40, 40, 40)])
    assert parts == whole


def test_compute_difference_is_not_reversed_by_mixing_strata() -> None:
    """Simpson's paradox: the second side is worse in both strata and better in their sum."""
    strata = [Stratum(81, 87, 234, 270), Stratum(192, 263, 55, 80)]
    found = compute_difference(strata)
    assert found is not None
    assert found.value < 0
    assert 273 / 350 < 289 / 350


def test_compute_exact_p_of_strata_agrees_with_enumeration() -> None:
    strata = [Stratum(2, 3, 1, 2), Stratum(1, 2, 3, 3)]
    chances: dict[int, float] = {}
    margins = [(s.first_n + s.second_n, s.first_k + s.second_k, s.second_n) for s in strata]
    left, right = (reference.hypergeom(total, passes, second) for total, passes, second in margins)
    for i in range(4):
        for j in range(4):
            chances[i + j] = chances.get(i + j, 0.0) + float(left.pmf(i)) * float(right.pmf(j))
    expected = sum(chance for chance in chances.values() if chance <= chances[4] * (1 + 1e-7))
    assert compute_exact_p(strata) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_compute_exact_p_of_equal_sides_rejects_at_most_one_in_twenty(share: float) -> None:
    """Enumerate every possible outcome."""
    n = 20
    chance = reference.binom.pmf(np.arange(n + 1), n, share)
    error = sum(
        chance[i] * chance[j]
        for i in range(n + 1)
        for j in range(n + 1)
        if chance[i] * chance[j] > 1e-9 and compute_exact_p([Stratum(i, n, j, n)]) <= ALPHA
    )
    assert error <= ALPHA


def test_compute_difference_without_common_stratum_is_none() -> None:
    assert compute_difference([Stratum(1, 2, 0, 0)]) is None


@pytest.mark.parametrize(("zero_at", "p"), [(0.2, 0.2), (0.9, 0.9), (1.5, 1.0)])
def test_reconcile_interval_with_test_p_is_error_at_which_limits_reach_0(zero_at: float, p: float) -> None:
    for ends in (lambda error: (error - zero_at, 2.0), lambda error: (-2.0, zero_at - error)):
        found = reconcile_interval_with_test(0.5, 0.01, ends)
        assert found.unadjusted_p_value == pytest.approx(p)
        assert not found.is_significant


def test_reconcile_interval_with_test_extends_to_0_without_rejection() -> None:
    above, below = (
        reconcile_interval_with_test(0.2, 0.5, lambda error: (0.1, 0.3)),
        reconcile_interval_with_test(-0.2, 0.5, lambda error: (-0.3, -0.1)),
    )
    assert (above.low, above.high, below.low, below.high) == (0.0, 0.3, -0.3, 0.0)


def test_reconcile_interval_with_test_p_equal_to_alpha_keeps_interval() -> None:
    found = reconcile_interval_with_test(0.2, ALPHA, lambda error: (0.1, 0.3))
    assert (found.low, found.high, found.is_significant) == (0.1, 0.3, True)


def test_compute_difference_of_unequal_strata_is_narrower_than_of_sum() -> None:
    apart = compute_difference([Stratum(10, 10, 10, 10), Stratum(0, 10, 0, 10)])
    together = compute_difference([Stratum(10, 20, 10, 20)])
    assert apart is not None
    assert together is not None
    assert apart.high - apart.low < 0.75 * (together.high - together.low)


def test_reconcile_interval_with_test_touching_0_has_p_above_alpha() -> None:
    found = reconcile_interval_with_test(0.5, 0.01, lambda error: (error - ALPHA, 2.0))
    assert found.low == 0
    assert found.unadjusted_p_value > ALPHA
