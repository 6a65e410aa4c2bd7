"""Differences between quantiles of times, with distribution-free intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from toolbench.evals.statistics.combined_limits import compute_difference_ends
from toolbench.evals.statistics.differences import ALPHA
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.evals.statistics.shares import Reals


@dataclass(frozen=True, slots=True)
class QuantileDifference:
    """A quantile of the second side minus that of the first, in the unit of the values.

    Attributes:
        value: The difference observed.
        low: The lower end of the interval at the confidence level 1 − ALPHA / `comparisons`; None if it is open.
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
    """Return the difference of a quantile between two sides, with an interval that combines their limits.

    Args:
        first: The values of the first side, in any order.
        second: The values of the second side, in any order.
        q: The quantile, as a fraction.
        comparisons: The number of comparisons that are shown together, this one included.

    Returns:
        The difference; None if a side has no value.
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
    first_quantile, second_quantile = (compute_quantile(side, q) for side in (first_values, second_values))
    value = second_quantile.value - first_quantile.value
    return QuantileDifference(value, low, high, first_quantile, second_quantile, comparisons)


def _compute_limits(ordered: Reals, q: float, tails: Reals) -> tuple[Reals, Reals]:
    """Return the lower and the upper limits of the quantile at each tail probability.

    The limits are order statistics, since the number of values up to the quantile is binomial. An open limit is
    infinite.

    Args:
        ordered: The values in ascending order.
        q: The quantile, as a fraction.
        tails: The tail probabilities.
    """
    n = len(ordered)
    cumulative = bdtr(np.arange(n), n, q)
    bounded = np.concatenate([[-math.inf], ordered, [math.inf]])
    low, high = np.searchsorted(cumulative, tails, side="right"), np.searchsorted(cumulative, 1 - tails, side="left")
    return bounded[low], bounded[high + 1]
