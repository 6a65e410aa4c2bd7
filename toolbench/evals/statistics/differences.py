"""Is one side better than the other? The difference of two shares over strata, its interval and an exact test.

The strata (scenarios, and whatever else both sides have) are weighed as Mantel and Haenszel do. The interval is
Newcombe's, from the Wilson intervals of both weighed shares; over strata with unlike shares it is wider than it need
be, never narrower. The test is Fisher's, conditional on every stratum's totals; over several strata their distributions
are convolved. It never claims a difference of equal sides more often than it says, however few the trials. The claim
rests on the test: at its edge the interval, which is near 95 % on average only, may say otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from toolbench.evals.statistics.shares import wilson

ALPHA = 0.05
AS_LIKELY = 1 + 1e-7  # tables this close in probability count as equal, as in scipy and R

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stratum:
    """`k` of `n` on each side."""

    first_k: int
    first_n: int
    second_k: int
    second_n: int

    @property
    def compared(self) -> bool:
        return self.first_n > 0 and self.second_n > 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The second share less the first, as a fraction, with its 95 % interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


def difference(strata: Sequence[Stratum]) -> Difference | None:
    """None where no stratum was tried on both sides."""
    compared = [stratum for stratum in strata if stratum.compared]
    if not compared:
        return None
    weights = [one.first_n * one.second_n / (one.first_n + one.second_n) for one in compared]
    first, below_first, above_first = _weighed([(one.first_k, one.first_n) for one in compared], weights)
    second, below_second, above_second = _weighed([(one.second_k, one.second_n) for one in compared], weights)
    return Difference(
        value=second - first,
        low=max(-1.0, second - first - hypot(below_second, above_first)),
        high=min(1.0, second - first + hypot(above_second, below_first)),
        p=exact_p(compared),
    )


def _weighed(counts: Sequence[tuple[int, int]], weights: Sequence[float]) -> tuple[float, float, float]:
    """The weighed share, and how far its Wilson interval reaches below and above it. Its number of trials is the one
    that would have its variance, were all strata alike."""
    whole = sum(weights)
    share = sum(weight * k / n for weight, (k, n) in zip(weights, counts, strict=True)) / whole
    trials = whole**2 / sum(weight**2 / n for weight, (_, n) in zip(weights, counts, strict=True))
    none, all_of_them = not any(k for k, _ in counts), all(k == n for k, n in counts)
    k = 0.0 if none else trials if all_of_them else share * trials
    low, high = wilson(k, trials)
    return k / trials, k / trials - low, high - k / trials


def exact_p(strata: Sequence[Stratum]) -> float:
    """The chance, were the sides equal in every stratum, of totals as unlikely as those seen."""
    chances, seen = np.ones(1), 0
    for stratum in strata:
        least, of_stratum = _second_passes(stratum)
        chances = np.convolve(chances, of_stratum)
        seen += stratum.second_k - least
    return float(min(1.0, chances[chances <= chances[seen] * AS_LIKELY].sum()))


def _second_passes(stratum: Stratum) -> tuple[int, Reals]:
    """The least number of passes the second side can have, given the totals, and the chances from there on."""
    passes, trials = stratum.first_k + stratum.second_k, stratum.first_n + stratum.second_n
    least, most = max(0, passes - stratum.first_n), min(passes, stratum.second_n)
    k = np.arange(least, most + 1)
    ways = _log_choose(stratum.second_n, k) + _log_choose(stratum.first_n, passes - k)
    return least, np.exp(ways - _log_choose(trials, np.array([passes])))


def _log_choose(n: int, k: NDArray[np.int_]) -> Reals:
    chosen: Reals = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return chosen
