"""The difference of two shares over strata, with an interval and a test that agree.

The strata (scenarios, and other things that both sides share) have Mantel-Haenszel weights. The interval combines the
exact limits of both weighted shares (`combined_limits.py`), each at the number of trials that has its variance (Korn
and Graubard). Fisher's test, conditional on every stratum's totals, tests whether the sides are equal; over several
strata their distributions are convolved.

Test and interval make one statement: the interval contains every difference that is not rejected, and 0 is rejected if
both the test and the limits reject it. Of `comparisons` shown together each has the level 1 − ALPHA / comparisons
(Bonferroni), so that all of them hold simultaneously.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from toolbench.evals.statistics.combined_limits import compute_difference_ends
from toolbench.evals.statistics.shares import compute_exact_limits

ALPHA = 0.05
EQUAL_LIKELIHOOD_FACTOR = 1 + 1e-7  # tables this close in probability count as equal, as in scipy and R

Reals = NDArray[np.float64]
ComputeEnds = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Passes `k` of trials `n` on each side of one stratum."""

    first_k: int
    first_n: int
    second_k: int
    second_n: int

    @property
    def compared(self) -> bool:
        """Return whether both sides have trials."""
        return self.first_n > 0 and self.second_n > 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The second side less the first, as a fraction.

    Attributes:
        low: The lower end of the interval at 1 − ALPHA / `comparisons`.
        high: The upper end of that interval.
        unadjusted_p_value: Two-sided p-value of this comparison alone. It is at most ALPHA / `comparisons` exactly if
            the interval excludes 0.
        test_p_value: The p-value of the test alone.
        ends: Returns the interval at an error, before it is reconciled with the test.
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
        """Return the p-value that belongs to the interval: corrected for the number of comparisons."""
        return min(1.0, self.comparisons * self.unadjusted_p_value)

    @property
    def is_significant(self) -> bool:
        """Return whether the interval excludes 0."""
        return _excludes_zero(self.low, self.high)

    def with_comparisons(self, comparisons: int) -> "Difference":
        """Return the same difference as one of so many that are shown together."""
        return reconcile_interval_with_test(self.value, self.test_p_value, self.ends, comparisons=comparisons)


def compute_difference(strata: Sequence[Stratum]) -> Difference | None:
    """Return the difference over `strata`; None if no stratum has trials on both sides."""
    compared = [stratum for stratum in strata if stratum.compared]
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


def reconcile_interval_with_test(value: float, tested: float, ends: ComputeEnds, *, comparisons: int = 1) -> Difference:
    """Return a difference whose interval excludes 0 exactly if its p-value is at most the error.

    If the test does not reject equal sides, the interval is extended to 0. If it does and the interval still contains
    0, the p-value is that of the interval: the error at which its end reaches 0.
    """
    alpha = ALPHA / comparisons
    p = tested
    for error in (ALPHA, alpha):
        if p <= error and not _excludes_zero(*ends(error)):
            p = max(_find_error_at_zero(ends, error), math.nextafter(error, 1))
    low, high = ends(alpha)
    if tested > alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(value, low, high, p, tested, ends, comparisons)


def _excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


def _find_error_at_zero(ends: ComputeEnds, least: float) -> float:
    """Return the error, at least `least`, at which an end of the interval reaches 0; 1 if none does."""

    def beyond(error: float) -> float:
        low, high = ends(error)
        return max(low, -high)

    return 1.0 if beyond(1.0) <= 0 else float(brentq(beyond, least, 1.0))


def _weight_counts(counts: Sequence[tuple[int, int]], weights: Sequence[float]) -> tuple[float, float]:
    """Return the weighted share as k of n, where n trials of one stratum have the same variance.

    The variance of a stratum is computed with one additional trial at the overall share, because few trials understate
    how much they vary.
    """
    share = sum(weight * k / n for weight, (k, n) in zip(weights, counts, strict=True)) / sum(weights)
    none, all_of_them = not any(k for k, _ in counts), all(k == n for k, n in counts)
    spreads = [weight**2 / n for weight, (_, n) in zip(weights, counts, strict=True)]
    trials = sum(weights) ** 2 / sum(spreads)
    if none or all_of_them:
        return 0.0 if none else trials, trials
    shares = [(k + share) / (n + 1) for k, n in counts]
    within = sum(spread * share * (1 - share) for spread, share in zip(spreads, shares, strict=True)) / sum(spreads)
    trials *= max(1.0, share * (1 - share) / within)
    return share * trials, trials


def compute_exact_p(strata: Sequence[Stratum]) -> float:
    """Return the p-value of Fisher's test over the strata.

    It is the probability of totals at most as likely as those observed, if the sides are equal in every stratum.
    """
    chances, seen = np.ones(1), 0
    for stratum in strata:
        least, of_stratum = _compute_pass_distribution(stratum)
        chances = np.convolve(chances, of_stratum)
        seen += stratum.second_k - least
    return float(min(1.0, chances[chances <= chances[seen] * EQUAL_LIKELIHOOD_FACTOR].sum()))


def _compute_pass_distribution(stratum: Stratum) -> tuple[int, Reals]:
    """Return the fewest passes the second side can have, given the totals, and the probabilities from there on."""
    passes, trials = stratum.first_k + stratum.second_k, stratum.first_n + stratum.second_n
    least, most = max(0, passes - stratum.first_n), min(passes, stratum.second_n)
    k = np.arange(least, most + 1)
    ways = _log_choose(stratum.second_n, k) + _log_choose(stratum.first_n, passes - k)
    return least, np.exp(ways - _log_choose(trials, np.array([passes])))


def _log_choose(n: int, k: NDArray[np.int_]) -> Reals:
    chosen: Reals = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return chosen
