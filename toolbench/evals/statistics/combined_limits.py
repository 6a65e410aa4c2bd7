"""Intervals of a figure that combines two independent estimates, from the confidence limits of each.

The normal quantile z of the confidence level is split between the two estimates in several proportions
(z² = z₁² + z₂²). The interval reaches from the lowest to the highest end of all splits. The methods of Newcombe and of
Zou and Donner use one split; at the high levels of simultaneous intervals one split gives too narrow intervals near 0
and 1, because limits there are skewed. With exact limits the coverage is at least the level in all cases that
`tests/evals/statistics/test_differences.py` enumerates.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from toolbench.evals.statistics.shares import Reals

ComputeLimits = Callable[[Reals], tuple[Reals, Reals]]

_SPLIT_ANGLES = np.linspace(0, math.pi / 2, 17)  # z₁ is z times the cosine of an angle, z₂ is z times its sine


def split_tails(alpha: float) -> tuple[Reals, Reals]:
    """Return two arrays, the tail probabilities of the first and of the second estimate in each split.

    Args:
        alpha: The error of the interval, as a fraction.
    """
    z = -float(ndtri(alpha / 2))
    return ndtr(-z * np.cos(_SPLIT_ANGLES)), ndtr(-z * np.sin(_SPLIT_ANGLES))


def compute_difference_ends(first: ComputeLimits, second: ComputeLimits, alpha: float) -> tuple[float, float]:
    """Return the ends of the interval of the second figure minus the first, at the level 1 − `alpha`.

    Args:
        first: Returns the lower and the upper limits of the first figure at given tail probabilities; an open limit is
            infinite.
        second: Returns the same for the second figure.
        alpha: The error of the interval, as a fraction.
    """
    first_tail, second_tail = split_tails(alpha)
    (first_low, first_high), (second_low, second_high) = first(first_tail), second(second_tail)
    return float(np.min(second_low - first_high)), float(np.max(second_high - first_low))
