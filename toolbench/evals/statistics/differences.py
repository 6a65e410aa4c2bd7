"""The difference of two shares over strata, with an interval and a test that agree.

The strata, such as scenarios, have Mantel-Haenszel weights. The interval combines the exact limits of both weighted
shares (`combined_limits.py`), each at its effective sample size (Korn and Graubard). Fisher's test, conditional on the
totals of every stratum, tests whether the sides are equal; the distributions of several strata are convolved.

The interval excludes 0 exactly if both the test and the limits reject a difference of 0. If several comparisons are
shown together, each has the level 1 − ALPHA / comparisons (Bonferroni), so that all intervals hold simultaneously.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from toolbench.evals.statistics.combined_limits import compute_difference_ends
from toolbench.evals.statistics.shares import Reals, compute_exact_limits

ALPHA = 0.05
EQUAL_LIKELIHOOD_FACTOR = 1 + 1e-7  # probabilities up to this ratio count as equal, as in R's fisher.test

ComputeEnds = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum: passes `k` and trials `n` of the first and of the second side."""

    first_k: int
    first_n: int
    second_k: int
    second_n: int

    @property
    def is_comparable(self) -> bool:
        """Return whether both sides have trials."""
        return self.first_n > 0 and self.second_n > 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The share of the second side minus that of the first, as a fraction.

    Attributes:
        value: The difference observed.
        low: The lower end of the interval at the confidence level 1 − ALPHA / `comparisons`.
        high: The upper end of that interval.
        unadjusted_p_value: The two-sided p-value of this comparison alone. It is at most ALPHA / `comparisons` exactly
            if the interval excludes 0.
        test_p_value: The p-value of the test, before it is reconciled with the interval.
        ends: Returns the ends of the interval at a given error, before the interval is reconciled with the test.
        comparisons: The number of comparisons that are shown together, this one included.
    """

    value: float
    low: float
    high: float
    unadjusted_p_value: float
    test_p_value: float
    ends: ComputeEnds = field(compare=False, repr=False)
    comparisons: int

    @property
    def p(self) -> float:
        """Return the p-value after Bonferroni's correction, at most 1."""
        return min(1.0, self.comparisons * self.unadjusted_p_value)

    @property
    def is_significant(self) -> bool:
        """Return whether the interval excludes 0."""
        return _excludes_zero(self.low, self.high)

    def with_comparisons(self, comparisons: int) -> "Difference":
        """Return the same difference as one of `comparisons` that are shown together."""
        return reconcile_interval_with_test(self.value, self.test_p_value, self.ends, comparisons=comparisons)


def compute_difference(strata: Sequence[Stratum]) -> Difference | None:
    """Return the difference over `strata`; None if no stratum has trials on both sides."""
    compared = [stratum for stratum in strata if stratum.is_comparable]
    if not compared:
        return None
    weights = [stratum.first_n * stratum.second_n / (stratum.first_n + stratum.second_n) for stratum in compared]
    first = _weight_counts([(stratum.first_k, stratum.first_n) for stratum in compared], weights)
    second = _weight_counts([(stratum.second_k, stratum.second_n) for stratum in compared], weights)

    def ends(alpha: float) -> tuple[float, float]:
        return compute_difference_ends(
            lambda tails: compute_exact_limits(*first, tails), lambda tails: compute_exact_limits(*second, tails), alpha
        )

    return reconcile_interval_with_test(second[0] / second[1] - first[0] / first[1], compute_exact_p(compared), ends)


def reconcile_interval_with_test(
    value: float, test_p_value: float, ends: ComputeEnds, *, comparisons: int = 1
) -> Difference:
    """Return a difference whose interval excludes 0 exactly if its p-value is at most ALPHA / `comparisons`.

    If the test does not reject equal sides, the interval is extended to 0. If the test rejects them and the interval
    contains 0, the p-value becomes the error at which an end of the interval reaches 0.

    Args:
        value: The difference observed.
        test_p_value: The p-value of the test.
        ends: Returns the ends of the interval at a given error.
        comparisons: The number of comparisons that are shown together, this one included.
    """
    alpha = ALPHA / comparisons
    p = test_p_value
    for error in (ALPHA, alpha):  # so that p agrees with the interval of this comparison alone and with the one shown
        if p <= error and not _excludes_zero(*ends(error)):
            p = max(_find_error_at_zero(ends, error), math.nextafter(error, 1))
    low, high = ends(alpha)
    if test_p_value > alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(value, low, high, p, test_p_value, ends, comparisons)


def _excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


def _find_error_at_zero(ends: ComputeEnds, min_error: float) -> float:
    """Return the error, at least `min_error`, at which an end of the interval reaches 0; 1 if none does."""

    def compute_distance(error: float) -> float:
        low, high = ends(error)
        return max(low, -high)

    return 1.0 if compute_distance(1.0) <= 0 else float(brentq(compute_distance, min_error, 1.0))


def _weight_counts(counts: Sequence[tuple[int, int]], weights: Sequence[float]) -> tuple[float, float]:
    """Return the weighted share as k of n, where n independent trials at one rate have the same variance.

    The variance of a stratum is computed with one additional trial at the weighted share, because the variance of few
    trials is underestimated otherwise. If all trials pass or all fail, the strata count as having one rate.

    Args:
        counts: (k, n) of each stratum.
        weights: The weight of each stratum.
    """
    share = sum(weight * k / n for weight, (k, n) in zip(weights, counts, strict=True)) / sum(weights)
    has_no_passes, has_no_failures = not any(k for k, _ in counts), all(k == n for k, n in counts)
    spreads = [weight**2 / n for weight, (_, n) in zip(weights, counts, strict=True)]
    trials = sum(weights) ** 2 / sum(spreads)
    if has_no_passes or has_no_failures:
        return 0.0 if has_no_passes else trials, trials
    rates = [(k + share) / (n + 1) for k, n in counts]
    within = sum(spread * rate * (1 - rate) for spread, rate in zip(spreads, rates, strict=True)) / sum(spreads)
    trials *= max(1.0, share * (1 - share) / within)
    return share * trials, trials


def compute_exact_p(strata: Sequence[Stratum]) -> float:
    """Return the two-sided p-value of Fisher's test over the strata.

    The p-value is the probability, if the sides are equal in every stratum, of all totals of passes on the second side
    that are at most as likely as the observed total.
    """
    probabilities, observed_index = np.ones(1), 0
    for stratum in strata:
        min_passes, stratum_probabilities = _compute_pass_distribution(stratum)
        probabilities = np.convolve(probabilities, stratum_probabilities)
        observed_index += stratum.second_k - min_passes
    return float(
        min(1.0, probabilities[probabilities <= probabilities[observed_index] * EQUAL_LIKELIHOOD_FACTOR].sum())
    )


def _compute_pass_distribution(stratum: Stratum) -> tuple[int, Reals]:
    """Return the distribution of the second side's passes, given the passes of both sides together.

    Returns:
        The smallest possible number of passes, and the probability of each number from there.
    """
    passes, trials = stratum.first_k + stratum.second_k, stratum.first_n + stratum.second_n
    min_passes, max_passes = max(0, passes - stratum.first_n), min(passes, stratum.second_n)
    k = np.arange(min_passes, max_passes + 1)
    log_counts = _compute_log_binomial(stratum.second_n, k) + _compute_log_binomial(stratum.first_n, passes - k)
    return min_passes, np.exp(log_counts - _compute_log_binomial(trials, np.array([passes])))


def _compute_log_binomial(n: int, k: NDArray[np.int_]) -> Reals:
    log_binomial: Reals = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return log_binomial
