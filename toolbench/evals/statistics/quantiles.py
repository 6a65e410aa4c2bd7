"""Quantiles of times, as order statistics with distribution-free bounds."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, nbdtrik

from toolbench.evals.statistics.shares import CONFIDENCE_LEVEL

TAIL_PROBABILITY = (1 - CONFIDENCE_LEVEL) / 2  # largest probability that the true quantile lies beyond one bound
_MAX_MORE_ANSWERS = 1_000_000
_FIRST_CHUNK = 16  # how many numbers of answers beyond a limit are tried first; each further chunk is twice as long


@dataclass(frozen=True, slots=True)
class Quantile:
    """The order statistic ⌈qn⌉ of `n` values, with its two-sided, distribution-free 95 % bounds.

    Attributes:
        value: The order statistic.
        low: The lower bound, which is one of the values; None if it is open because n is too small.
        high: The upper bound, which is one of the values; None if it is open because n is too small.
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
        """Return whether one of the bounds is open."""
        return self.low is None or self.high is None


def compute_quantile(values: Sequence[float] | np.ndarray, q: float) -> Quantile:
    """Return the quantile of `values` with its bounds.

    Args:
        values: At least one value, in any order.
        q: A fraction between 0 and 1.

    Raises:
        ValueError: There is no value.
    """
    n = len(values)
    ranks = compute_quantile_ranks(q, n)
    indices = [rank - 1 for rank in ranks if rank is not None]
    partitioned = np.partition(np.asarray(values, dtype=float), indices)  # in linear time, unlike sorting
    low, high = (None if rank is None else float(partitioned[rank - 1]) for rank in ranks[1:])
    return Quantile(float(partitioned[ranks[0] - 1]), low, high, n, q)


def compute_order_statistic(values: Sequence[float] | np.ndarray, q: float) -> float:
    """Return the value of a quantile as `compute_quantile` does, without its bounds."""
    index = compute_quantile_ranks(q, len(values))[0] - 1
    partitioned = np.array(values, dtype=float)
    partitioned.partition(index)
    return float(partitioned[index])


@lru_cache(maxsize=4096)
def compute_quantile_ranks(q: float, n: int) -> tuple[int, int | None, int | None]:
    """Return the ranks of a quantile and of its bounds among `n` sorted values.

    For any distribution, the true quantile lies below the lower bound with a probability of at most 2.5 %, and above
    the upper bound with at most 2.5 %, since the number of values up to the true quantile is binomial (n, q).

    Returns:
        The ranks of the value, the lower bound and the upper bound, from 1; None for a bound that is open.

    Raises:
        ValueError: There is no value.
    """
    if n < 1:
        raise ValueError("A quantile needs at least one value.")
    value_rank = math.ceil(Fraction(str(q)) * n)  # exact: 0.07 * 100 as floats is above 7

    def compute_cumulative_probability(count: int) -> float:
        return float(bdtr(count, n, q))

    low_rank = bisect_right(range(n), TAIL_PROBABILITY, key=compute_cumulative_probability)
    highest_count = bisect_left(range(n), 1 - TAIL_PROBABILITY, key=compute_cumulative_probability)
    return max(value_rank, 1), low_rank or None, highest_count + 1 if highest_count < n else None


def count_more_answers_for_bounds(q: float, n: int) -> int:
    """Return how many more answers than `n` are needed so that no bound of the quantile `q` is open.

    Args:
        q: A fraction between 0 and 1.
        n: The number of answers so far.

    Returns:
        The number of answers; 0 if no bound is open.
    """
    return max(0, math.ceil(math.log(TAIL_PROBABILITY) / math.log(max(q, 1 - q))) - n)


def count_more_answers_for_limit(
    values: Sequence[float], q: float, limit: float, *, at_least: int = 0, step: int = 1
) -> int | None:
    """Return how many more answers than `values` are needed so that a quantile's upper bound is within a limit.

    The share of the answers beyond the limit is assumed to stay the same, with their number rounded up. With more
    answers than returned, the bound may exceed the limit again.

    Args:
        values: At least one value, in any order.
        q: A fraction between 0 and 1.
        limit: The largest value permitted.
        at_least: The smallest number to return, a multiple of `step`.
        step: The number of answers that are added at a time.

    Returns:
        The smallest such number, a multiple of `step`; None if a million or more would be needed, or if no number is
        enough because the quantile is beyond the limit.
    """
    n = len(values)
    beyond = int(np.count_nonzero(np.asarray(values, dtype=float) > limit))
    if beyond >= (1 - q) * n:
        return None

    first, size = beyond, _FIRST_CHUNK
    while first <= beyond * (n + _MAX_MORE_ANSWERS) // n:
        numbers = np.arange(first, first + size)  # of answers beyond the limit
        totals = numbers + 1 + np.ceil(nbdtrik(1 - TAIL_PROBABILITY, numbers + 1, 1 - q)).astype(int)
        more = np.maximum(-((n - totals) // step) * step, at_least)
        found = more[(beyond * (n + more) <= numbers * n) & (more < _MAX_MORE_ANSWERS)]
        if found.size:
            return int(found[0])
        first, size = first + size, 2 * size
    return None


def compute_nearest_rank_percentile(values: Sequence[float], q: int) -> float:
    """Return the case study's percentile: of n sorted values the one at index floor(n · q / 100), from 0.

    Without values it is 0. Use this function only for comparisons with published figures and for exports, and
    `compute_quantile` elsewhere.

    Args:
        values: The values, in any order.
        q: The percentile, in percent, less than 100.
    """
    if not values:
        return 0.0
    place = len(values) * q // 100
    return float(np.partition(np.asarray(values, dtype=float), place)[place])
