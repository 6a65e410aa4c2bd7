"""The trials that would find a difference do find it, by the very test that will be used."""

import numpy as np
import pytest
from scipy import stats as reference

from toolbench.evals.statistics.differences import ALPHA, Stratum, exact_p
from toolbench.evals.statistics.power import least_found, noise, trials_to_find


@pytest.mark.parametrize(("share", "points"), [(0.95, 0.25), (0.5, 0.4)])
def test_so_many_trials_find_it_in_four_of_five_comparisons(share: float, points: float) -> None:
    n = trials_to_find(points, share=share)
    first, second = (reference.binom.pmf(np.arange(n + 1), n, rate) for rate in (share, share - points))
    likely = [(i, j, first[i] * second[j]) for i in range(n + 1) for j in range(n + 1) if first[i] * second[j] > 1e-5]
    power = sum(chance for i, j, chance in likely if exact_p([Stratum(i, n, j, n)]) <= ALPHA)
    assert 0.79 <= power <= 0.88


def test_smaller_differences_take_more_trials() -> None:
    assert trials_to_find(0.05, share=0.9) > trials_to_find(0.1, share=0.9) > trials_to_find(0.2, share=0.9)


def test_a_share_too_low_to_be_lowered_is_raised() -> None:
    assert trials_to_find(0.1, share=0.0) == trials_to_find(0.1, share=0.1)


def test_the_least_difference_that_so_many_trials_find() -> None:
    n = trials_to_find(0.2, share=0.9)
    assert least_found(n, share=0.9) == pytest.approx(0.2)
    assert least_found(2, share=0.9) is None


@pytest.mark.parametrize("points", [0, 1, 7])
def test_a_difference_is_a_fraction(points: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        trials_to_find(points, share=0.9)


def test_equal_sides_come_to_lie_apart_by_chance() -> None:
    assert noise(0.9, 40, 40) == pytest.approx(0.1417, abs=1e-3)
    assert noise(0.9, 4000, 4000) == pytest.approx(0.01315, abs=1e-4)
    assert noise(1.0, 30, 30) > 0.08
    assert noise(0.9, 0, 40) == 1
