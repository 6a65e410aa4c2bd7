"""Tests of the number of trials that detect a difference, and of the A/A noise."""

import math

import numpy as np
import pytest
from scipy import stats as reference

from toolbench.evals.statistics.differences import ALPHA, Stratum, compute_exact_p
from toolbench.evals.statistics.power import compute_aa_noise, count_trials_to_detect, find_detectable_difference


@pytest.mark.parametrize(("share", "difference"), [(0.95, 0.25), (0.5, 0.4)])
def test_count_trials_to_detect_gives_a_power_of_80_percent(share: float, difference: float) -> None:
    n = count_trials_to_detect(difference, share=share)
    first, second = (reference.binom.pmf(np.arange(n + 1), n, rate) for rate in (share, share - difference))
    likely = [(i, j, first[i] * second[j]) for i in range(n + 1) for j in range(n + 1) if first[i] * second[j] > 1e-5]
    power = sum(chance for i, j, chance in likely if compute_exact_p([Stratum(i, n, j, n)]) <= ALPHA)
    assert 0.79 <= power <= 0.88


def test_count_trials_to_detect_smaller_difference_needs_more() -> None:
    assert (
        count_trials_to_detect(0.05, share=0.9)
        > count_trials_to_detect(0.1, share=0.9)
        > count_trials_to_detect(0.2, share=0.9)
    )


def test_count_trials_to_detect_share_below_difference_raises_second_side() -> None:
    assert count_trials_to_detect(0.1, share=0.0) == count_trials_to_detect(0.1, share=0.1)


def test_find_detectable_difference_inverts_count_trials_to_detect() -> None:
    n = count_trials_to_detect(0.2, share=0.9)
    assert find_detectable_difference(n, share=0.9) == pytest.approx(0.2)
    assert find_detectable_difference(2, share=0.9) is None


@pytest.mark.parametrize("difference", [0, 1, 7])
def test_count_trials_to_detect_difference_must_be_a_fraction(difference: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        count_trials_to_detect(difference, share=0.9)


def test_compute_aa_noise_shrinks_with_the_number_of_trials() -> None:
    assert compute_aa_noise(0.9, 40, 40) == pytest.approx(0.1417, abs=1e-3)
    assert compute_aa_noise(0.9, 4000, 4000) == pytest.approx(0.01315, abs=1e-4)
    assert compute_aa_noise(1.0, 30, 30) > 0.08
    assert compute_aa_noise(0.9, 0, 40) == 1


def count_trials_by_published_formula(first: float, second: float) -> int:
    """Return the number of trials per side by the formula of Casagrande, Pike and Smith (Biometrics 34, 1978).

    The test is two-sided at 5 %, with 80 % power.
    """
    z_alpha, z_beta = reference.norm.ppf(0.975), reference.norm.ppf(0.8)
    mean = (first + second) / 2
    spread = math.sqrt(first * (1 - first) + second * (1 - second))
    a = (z_alpha * math.sqrt(2 * mean * (1 - mean)) + z_beta * spread) ** 2
    gap = abs(first - second)
    return math.ceil(a * (1 + math.sqrt(1 + 4 * gap / a)) ** 2 / (4 * gap**2))


@pytest.mark.parametrize(
    ("share", "difference", "other"),
    [(0.9, 0.1, 0.8), (0.95, 0.25, 0.7), (0.5, 0.4, 0.1), (0.2, 0.3, 0.5), (0.5, 0.6, 1.0), (0.03, 0.99, 1.0)],
)
def test_count_trials_to_detect_equals_published_formula(share: float, difference: float, other: float) -> None:
    assert count_trials_to_detect(difference, share=share) == count_trials_by_published_formula(share, other)


def test_count_trials_to_detect_clamps_the_share_to_0_and_1() -> None:
    assert count_trials_to_detect(0.1, share=1.05) == count_trials_to_detect(0.1, share=1.0)
    assert count_trials_to_detect(0.1, share=-0.05) == count_trials_to_detect(0.1, share=0.0)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.07, 0.2, 0.5, 0.9, 1.0])
def test_find_detectable_difference_is_the_first_detectable_whole_point(share: float) -> None:
    possible = [points for points in range(1, 100) if points <= round(100 * max(share, 1 - share))]
    needed = {points: count_trials_to_detect(points / 100, share=share) for points in possible}
    for trials in sorted({1, *needed.values(), *(n - 1 for n in needed.values())}):
        expected = next((points / 100 for points in possible if needed[points] <= trials), None)
        assert find_detectable_difference(trials, share=share) == expected


def test_compute_aa_noise_of_too_few_trials_is_1() -> None:
    assert compute_aa_noise(0.5, 1, 1) == 1
    assert compute_aa_noise(0.9, 40, 0) == 1
