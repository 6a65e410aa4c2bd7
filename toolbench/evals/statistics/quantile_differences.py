"""Differences between quantiles of times, with an interval that assumes no distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from toolbench.evals.statistics.combined_limits import Reals, compute_difference_ends
from toolbench.evals.statistics.differences import ALPHA
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile


@dataclass(frozen=True, slots=True)
class QuantileDifference:
    """A quantile of the second side less that of the first.

    Attributes:
        low: The lower end of the interval at 1 − ALPHA / `comparisons`; None if it is open.
        high: The upper end of that interval; None if it is open.
        first: The quantile of the first side.
        second: The quantile of the second side.
        comparisons: The number of comparisons that are shown together, this one included.
    """

    value: float
    low: float | None
    high: float | None
    first: Quantile
    second: Quantile
    comparisons: int = 1

    @property
    def is_significant(self) -> bool:
        """Return whether the interval excludes 0."""
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)


def compute_quantile_difference(
    first: Sequence[float], second: Sequence[float], q: float, *, comparisons: int = 1
) -> QuantileDifference | None:
    """Return the difference of the quantile `q`; None if a side has no value.

    The interval combines the distribution-free limits of both sides (`combined_limits.py`).
    """
    if not first or not second:
        return None
    first_values, second_values = (np.sort(np.asarray(side, dtype=float)) for side in (first, second))
    ends = compute_difference_ends(
        lambda tails: _compute_limits(first_values, q, tails),
        lambda tails: _compute_limits(second_values, q, tails),
        ALPHA / comparisons,
    )
    low, high = (end if math.isfinite(end) else None for end in ends)
    before, after = (compute_quantile(side, q) for side in (first_values, second_values))
    return QuantileDifference(after.value - before.value, low, high, before, after, comparisons)


def _compute_limits(ordered: Reals, q: float, tails: Reals) -> tuple[Reals, Reals]:
    """Return the order statistics beyond which the quantile lies with at most the probability of each tail.

    A limit that does not exist is infinite. The number of values up to the quantile is binomial.
    """
    n = len(ordered)
    up_to = bdtr(np.arange(n), n, q)
    bounded = np.concatenate([[-math.inf], ordered, [math.inf]])
    low, high = np.searchsorted(up_to, tails, side="right"), np.searchsorted(up_to, 1 - tails, side="left")
    return bounded[low], bounded[high + 1]
