"""Quantiles of times as order statistics with distribution-free bounds, and the difference between two sides."""

import math
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from scipy.special import bdtr

from toolbench.evals.statistics.shares import LEVEL

P95_LEAST = 60  # values; below, a p95 was no number: the callers drop this limit one by one
TAIL = (1 - LEVEL) / 2  # probability that the true quantile lies beyond one bound, at most
RESAMPLES = 2_000
SEED = 20_260_222  # equal times give equal intervals
AT_ONCE = 250  # resamples held in memory


@dataclass(frozen=True, slots=True)
class Quantile:
    """The order statistic ⌈qn⌉ of `n` values with its two-sided, distribution-free 95 % bounds.

    Attributes:
        low: the lower bound, itself one of the values; None where it is open, because n is too small.
        high: the upper bound in the same way.
        n: the number of values.
        q: which quantile it is, a fraction.
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


def quantile(values: Sequence[float] | np.ndarray, q: float) -> Quantile:
    """Return the quantile of `values` with its bounds.

    Args:
        values: at least one, in any order.
        q: a fraction between 0 and 1.

    Raises:
        ValueError: there is no value.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    value, low, high = quantile_ranks(q, n)
    lower, upper = (None if rank is None else float(ordered[rank - 1]) for rank in (low, high))
    return Quantile(float(ordered[value - 1]), lower, upper, n, q)


@lru_cache(maxsize=4096)
def quantile_ranks(q: float, n: int) -> tuple[int, int | None, int | None]:
    """Return the ranks of the value and of its bounds among `n` sorted values, the least one being 1.

    The lower bound is the greatest order statistic that lies above the true quantile with a probability of at most
    2.5 %, the upper bound the least one that lies below it with at most 2.5 %, whatever the distribution is. The number
    of values up to the true quantile is binomial (n, q).

    Returns:
        Ranks of value, lower bound and upper bound; None for a bound that n values cannot give.

    Raises:
        ValueError: there is no value.
    """
    if n < 1:
        raise ValueError("A quantile needs at least one value.")
    value = math.ceil(Fraction(str(q)) * n)  # exact: 0.07 * 100 as floats is above 7

    def cumulative(count: int) -> float:
        return float(bdtr(count, n, q))

    low = bisect_right(range(n), TAIL, key=cumulative)
    high = bisect_left(range(n), 1 - TAIL, key=cumulative)
    return max(value, 1), low or None, high + 1 if high < n else None


def answers_until_closed(q: float, n: int) -> int:
    """Return how many answers more than `n` close both bounds of the quantile; 0 where none is open."""
    return max(0, math.ceil(math.log(TAIL) / math.log(max(q, 1 - q))) - n)


def parity_percentile(values: Sequence[float], q: int) -> float:
    """Return the case study's percentile: the value at place floor(n · q) from 0, or 0 without values.

    It appears beside the published figures and in exports only, and is never mixed with `quantile`."""
    return sorted(values)[len(values) * q // 100] if values else 0.0


@dataclass(frozen=True, slots=True)
class Shift:
    """A quantile of the second side less that of the first, with its 95 % bootstrap interval.

    Attributes:
        low: None, as is `high`, where a bound of either side is open.
        method: BCa (biased ends corrected and accelerated); percentile where times are too alike for its correction;
            blank without an interval.
        first: the quantile of the first side.
        second: the quantile of the second side.
    """

    value: float
    low: float | None
    high: float | None
    method: str
    first: Quantile
    second: Quantile


def quantile_shift(first: Sequence[float], second: Sequence[float], q: float) -> Shift | None:
    """Return how far a quantile of `second` lies above that of `first`; None while a side has no value.

    scipy imports its statistics when they are first used, so that a web process starts without them."""
    if not first or not second:
        return None
    before, after = quantile(first, q), quantile(second, q)
    value = after.value - before.value
    if before.is_open or after.is_open:
        return Shift(value, None, None, "", before, after)

    def shift(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(_order_statistic(b, q, axis) - _order_statistic(a, q, axis))

    sides = (np.asarray(first, dtype=float), np.asarray(second, dtype=float))
    for method in ("BCa", "percentile"):
        low, high = _resampled(sides, shift, method)
        if np.isfinite([low, high]).all():
            break
    return Shift(value, low, high, method, before, after)


def _order_statistic(values: np.ndarray, q: float, axis: int) -> np.ndarray:
    rank, _, _ = quantile_ranks(q, values.shape[axis])
    return np.asarray(np.take(np.partition(values, rank - 1, axis=axis), rank - 1, axis=axis))


def _resampled(
    sides: tuple[np.ndarray, np.ndarray], shift: Callable[..., np.ndarray], method: Literal["BCa", "percentile"]
) -> tuple[float, float]:
    """The ends of the interval; not numbers where BCa cannot correct them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        drawn = scipy.stats.bootstrap(
            sides, shift, n_resamples=RESAMPLES, batch=AT_ONCE, confidence_level=LEVEL, method=method,
            vectorized=True, rng=np.random.default_rng(SEED),
        )  # fmt: skip
    low, high = drawn.confidence_interval
    return float(low), float(high)
