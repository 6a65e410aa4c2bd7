"""Quantiles of times as order statistics with distribution-free bounds."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import bdtr

from toolbench.evals.statistics.shares import CONFIDENCE_LEVEL

TAIL_PROBABILITY = (1 - CONFIDENCE_LEVEL) / 2  # the largest one beyond each bound


@dataclass(frozen=True, slots=True)
class Quantile:
    """The order statistic ⌈qn⌉ of `n` values with its two-sided, distribution-free 95 % bounds.

    Attributes:
        low: The lower bound, itself one of the values; None if it is open, because n is too small.
        high: The upper bound; None if it is open.
        n: The number of values.
        q: The quantile, as a fraction.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    q: float

    @property
    def is_open(self) -> bool:
        """Return whether a bound does not exist."""
        return self.low is None or self.high is None


def compute_quantile(values: Sequence[float] | np.ndarray, q: float) -> Quantile:
    """Return the quantile of `values` with its bounds.

    Args:
        values: At least one value, in any order.
        q: A fraction between 0 and 1.

    Raises:
        ValueError: There is no value.
    """
    ordered = np.sort(np.asarray(values, dtype=float), kind="stable")  # linear time for concatenated sorted runs
    n = len(ordered)
    value, low, high = compute_quantile_ranks(q, n)
    lower, upper = (None if rank is None else float(ordered[rank - 1]) for rank in (low, high))
    return Quantile(float(ordered[value - 1]), lower, upper, n, q)


@lru_cache(maxsize=4096)
def compute_quantile_ranks(q: float, n: int) -> tuple[int, int | None, int | None]:
    """Return the ranks of the value and of its bounds among `n` sorted values, the smallest having rank 1.

    The lower bound is the greatest order statistic that lies above the true quantile with a probability of at most 2.5
    %, the upper bound the smallest one that lies below it with at most 2.5 %, for any distribution. The number of
    values up to the true quantile is binomial (n, q).

    Returns:
        Ranks of value, lower bound and upper bound; None for a bound that n values cannot give.

    Raises:
        ValueError: There is no value.
    """
    if n < 1:
        raise ValueError("A quantile needs at least one value.")
    value = math.ceil(Fraction(str(q)) * n)  # exact: 0.07 * 100 as floats is above 7

    def cumulative(count: int) -> float:
        return float(bdtr(count, n, q))

    low = bisect_right(range(n), TAIL_PROBABILITY, key=cumulative)
    high = bisect_left(range(n), 1 - TAIL_PROBABILITY, key=cumulative)
    return max(value, 1), low or None, high + 1 if high < n else None


def count_answers_until_closed(q: float, n: int) -> int:
    """Return how many answers more than `n` close both bounds of the quantile; 0 if none is open."""
    return max(0, math.ceil(math.log(TAIL_PROBABILITY) / math.log(max(q, 1 - q))) - n)


def compute_nearest_rank_percentile(values: Sequence[float], q: int) -> float:
    """Return the case study's percentile: the value at index floor(n · q / 100), or 0 without values.

    It appears only beside the published figures and in exports, and is never mixed with `compute_quantile`.
    """
    return sorted(values)[len(values) * q // 100] if values else 0.0
