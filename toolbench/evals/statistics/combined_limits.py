"""Intervals of a figure that combines two independent estimates, from the confidence limits of each.

The confidence is split between the two estimates in several proportions (z² = z₁² + z₂²), and the interval is the
widest result. The methods of Newcombe and of Zou and Donner use one split; at the high levels of simultaneous intervals
one split gives too narrow intervals near 0 and 1, because limits there are skewed. With exact limits the enumerated
coverage is at least the level (`tests/evals/statistics/test_differences.py`).
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from toolbench.evals.statistics.shares import Reals

ComputeLimits = Callable[[Reals], tuple[Reals, Reals]]

_SPLIT_ANGLES = np.linspace(0, math.pi / 2, 17)


def split_tails(alpha: float) -> tuple[Reals, Reals]:
    """Return the tail probabilities of the first and of the second estimate, one value per split each.

    Args:
        alpha: The error of the interval.
    """
    z = -float(ndtri(alpha / 2))
    return ndtr(-z * np.cos(_SPLIT_ANGLES)), ndtr(-z * np.sin(_SPLIT_ANGLES))


def compute_difference_ends(first: ComputeLimits, second: ComputeLimits, alpha: float) -> tuple[float, float]:
    """Return the interval of the second figure minus the first, at the level 1 − `alpha`.

    Args:
        first: Returns the lower and the upper limits of the first figure at given tail probabilities; a limit that is
            open is infinite.
        second: Returns the same for the second figure.
        alpha: The error of the interval.
    """
    first_tail, second_tail = split_tails(alpha)
    (first_low, first_high), (second_low, second_high) = first(first_tail), second(second_tail)
    return float(np.min(second_low - first_high)), float(np.max(second_high - first_low))
