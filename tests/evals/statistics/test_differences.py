"""Differences of shares: golden against statsmodels and scipy, and never a claim more often than it says."""

import numpy as np
import pytest
from scipy import stats as reference
from statsmodels.stats.proportion import confint_proportions_2indep

from toolbench.evals.statistics.differences import ALPHA, Stratum, difference, exact_p


@pytest.mark.parametrize("counts", [(36, 40, 40, 40), (28, 40, 38, 40), (2, 10, 9, 10), (3, 7, 5, 9), (1, 50, 49, 60)])
def test_one_stratum_is_newcombes_interval_and_fishers_test(counts: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = counts
    found = difference([Stratum(*counts)])
    assert found is not None
    wanted = confint_proportions_2indep(k2, n2, k1, n1, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(wanted)
    assert found.p == pytest.approx(float(reference.fisher_exact(np.array([[k1, n1 - k1], [k2, n2 - k2]])).pvalue))


def test_alike_strata_say_what_their_sum_says() -> None:
    parts, whole = difference([Stratum(10, 10, 10, 10)] * 4), difference([Stratum(40, 40, 40, 40)])
    assert parts == whole


def test_a_difference_within_strata_is_not_hidden_by_their_mixture() -> None:
    """Simpson's: the second side is better in both, worse in the sum."""
    strata = [Stratum(81, 87, 234, 270), Stratum(192, 263, 55, 80)]
    found = difference(strata)
    assert found is not None
    assert found.value < 0
    assert 273 / 350 < 289 / 350


def test_the_exact_test_of_strata_agrees_with_every_table_counted_out() -> None:
    strata = [Stratum(2, 3, 1, 2), Stratum(1, 2, 3, 3)]
    chances: dict[int, float] = {}
    margins = [(s.first_n + s.second_n, s.first_k + s.second_k, s.second_n) for s in strata]
    one, two = (reference.hypergeom(total, passes, second) for total, passes, second in margins)
    for i in range(4):
        for j in range(4):
            chances[i + j] = chances.get(i + j, 0.0) + float(one.pmf(i)) * float(two.pmf(j))
    wanted = sum(chance for chance in chances.values() if chance <= chances[4] * (1 + 1e-7))
    assert exact_p(strata) == pytest.approx(wanted)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_equal_sides_are_called_different_in_at_most_one_of_twenty(share: float) -> None:
    """Counted out over every possible outcome, not drawn."""
    n = 20
    chance = reference.binom.pmf(np.arange(n + 1), n, share)
    wrong = sum(
        chance[i] * chance[j]
        for i in range(n + 1)
        for j in range(n + 1)
        if chance[i] * chance[j] > 1e-9 and exact_p([Stratum(i, n, j, n)]) <= ALPHA
    )
    assert wrong <= ALPHA


def test_nothing_in_common_is_no_difference_at_all() -> None:
    assert difference([Stratum(1, 2, 0, 0)]) is None
