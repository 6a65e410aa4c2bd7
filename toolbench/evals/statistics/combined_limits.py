"""Intervals of a figure made of two independent estimates, from the confidence limits of each.

The confidence is split between both estimates in every proportion (z² = z₁² + z₂²), and the interval takes the widest
result. Newcombe's method, and Zou and Donner's, use one split only. At the high levels of simultaneous intervals that
is too narrow near 0 and 1, because limits there are skewed. With exact limits the enumerated coverage is at least the
level (`tests/evals/statistics/test_differences.py`).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Reals = NDArray[np.float64]
ComputeLimits = Callable[[Reals], tuple[Reals, Reals]]

_SPLIT_ANGLES = np.linspace(0, math.pi / 2, 17)


def split_tails(alpha: float) -> tuple[Reals, Reals]:
    """Return the tail probabilities of the first and of the second estimate, one for every split of 1 − `alpha`."""
    z = -float(ndtri(alpha / 2))
    return ndtr(-z * np.cos(_SPLIT_ANGLES)), ndtr(-z * np.sin(_SPLIT_ANGLES))


def compute_difference_ends(first: ComputeLimits, second: ComputeLimits, alpha: float) -> tuple[float, float]:
    """Return the interval of the second figure less the first at 1 − `alpha`.

    Args:
        first: Returns the lower and the upper limits at the given tail probabilities; an open limit is infinite.
        second: The same for the second figure.
        alpha: The error of the interval.
    """
    first_tail, second_tail = split_tails(alpha)
    (first_low, first_high), (second_low, second_high) = first(first_tail), second(second_tail)
    return float(np.min(second_low - first_high)), float(np.max(second_high - first_low))
