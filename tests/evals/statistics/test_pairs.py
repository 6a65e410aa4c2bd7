"""Tests of paired differences: McNemar's exact test, and an interval that agrees with it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial
from statsmodels.stats.contingency_tables import mcnemar

from toolbench.evals.statistics.differences import ALPHA, Stratum, compute_difference
from toolbench.evals.statistics.pairs import compute_paired_difference, compute_sign_p

FIXED, REGRESSED, ALIKE = (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)
shares = st.tuples(*[st.sampled_from([0.0, 1.0, 0.5, 1 / 3])] * 2)


@given(st.lists(shares, min_size=1, max_size=40), st.integers(1, 30))
def test_compute_paired_difference_verdict_p_and_interval_agree(
    pairs: list[tuple[float, float]], comparisons: int
) -> None:
    alone = compute_paired_difference(pairs)
    assert alone is not None
    found = alone.with_comparisons(comparisons)
    assert found.is_significant == (not found.low <= 0 <= found.high) == (found.p <= ALPHA)
    assert found.low <= alone.low <= found.value <= alone.high <= found.high


@pytest.mark.parametrize(("fixed", "regressed"), [(8, 1), (5, 5), (0, 6), (12, 3)])
def test_compute_paired_difference_of_one_trial_a_side_is_mcnemars_test(fixed: int, regressed: int) -> None:
    found = compute_paired_difference([FIXED] * fixed + [REGRESSED] * regressed + [ALIKE] * 20)
    assert found is not None
    assert found.p == pytest.approx(mcnemar([[10, regressed], [fixed, 10]], exact=True).pvalue)
    assert found.value == pytest.approx((fixed - regressed) / (fixed + regressed + 20))


@pytest.mark.parametrize("comparisons", [1, 5, 20])
def test_compute_paired_difference_interval_misses_at_most_as_stated(comparisons: int) -> None:
    """Enumerate every possible outcome of 20 pairs."""
    n = 20
    counts = [(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)]
    ends = [_compute_ends(b, c, n, comparisons) for b, c, _ in counts]
    low, high = np.array(ends).T
    for better, worse in product((0.002, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95), repeat=2):
        if better + worse > 0.999:
            continue
        chance = multinomial.pmf(counts, n, [better, worse, 1 - better - worse])
        missed = (low > better - worse + 1e-12) | (high < better - worse - 1e-12)
        assert chance[missed].sum() <= ALPHA / comparisons


def _compute_ends(better: int, worse: int, n: int, comparisons: int) -> tuple[float, float]:
    found = compute_paired_difference([FIXED] * better + [REGRESSED] * worse + [ALIKE] * (n - better - worse))
    assert found is not None
    adjusted = found.with_comparisons(comparisons)
    return adjusted.low, adjusted.high


def test_compute_paired_difference_trials_of_an_instance_are_one_pair() -> None:
    found = compute_paired_difference([(0.5, 1.0)] * 12)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert found.p == pytest.approx(compute_sign_p(6, 0))


def test_compute_paired_difference_is_narrower_if_pairs_agree() -> None:
    pairs, samples = (
        compute_paired_difference([FIXED] * 4 + [ALIKE] * 36),
        compute_difference([Stratum(18, 40, 22, 40)]),
    )
    assert pairs is not None
    assert samples is not None
    assert pairs.high - pairs.low < samples.high - samples.low


def test_compute_paired_difference_of_equal_pairs_is_around_0() -> None:
    found = compute_paired_difference([ALIKE] * 20)
    assert found is not None
    assert found.low < 0 < found.high
    assert found.p == 1


def test_compute_paired_difference_without_pairs_is_none() -> None:
    assert compute_paired_difference([]) is None
    assert compute_sign_p(0, 0) == 1
