"""Intervals of a share, and the number of trials after which the lower bound reaches a target.

Wilson's interval is for rates of independent trials: it is narrow, and its mean coverage is near 95 %. The exact
interval (Clopper-Pearson) is for clustered trials, at the effective sample size (Korn and Graubard), and for bounds
whose coverage must never be below 95 %.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri

Reals = NDArray[np.float64]

CONFIDENCE_LEVEL = 0.95
Z = float(ndtri((1 + CONFIDENCE_LEVEL) / 2))  # 1.96 standard deviations on either side


def compute_wilson_interval(k: float, n: float) -> tuple[float, float]:
    """Return the ends of the 95 % Wilson interval of k passes in n trials, as fractions.

    Without trials they are (0, 1).

    Raises:
        ValueError: The counts do not satisfy 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    if n == 0:
        return 0.0, 1.0
    share, denominator = k / n, 2 * (n + Z**2)
    centre = (2 * n * share + Z**2) / denominator
    half_width = Z / denominator * math.sqrt(4 * n * share * (1 - share) + Z**2)
    return (0.0 if k == 0 else centre - half_width), (1.0 if k == n else centre + half_width)


def count_more_trials_to_reach_target(k: float, n: float, target: float) -> int | None:
    """Return how many more trials at the observed share would raise the lower Wilson bound to a target.

    With a share p, the lower Wilson bound reaches t at n = z² · t(1 - t) / (p - t)².

    Args:
        k: The number of passes so far.
        n: The number of trials so far.
        target: The target, as a fraction.

    Returns:
        The number of trials; None without trials, or if the observed share does not exceed the target.

    Raises:
        ValueError: The target is not between 0 and 1.
    """
    if not 0 < target < 1:
        raise ValueError(f"a target is a fraction between 0 and 1, not {target}")
    if n == 0 or k / n <= target:
        return None
    needed = math.ceil(Z**2 * target * (1 - target) / (k / n - target) ** 2)
    return max(0, math.ceil(needed - n))


def compute_exact_interval(k: float, n: float) -> tuple[float, float]:
    """Return the ends of the 95 % exact interval of k passes in n trials, as fractions.

    Without trials they are (0, 1). Effective counts, which need not be whole numbers, are accepted too.

    Raises:
        ValueError: The counts do not satisfy 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    low, high = compute_exact_limits(k, n, np.array([(1 - CONFIDENCE_LEVEL) / 2]))
    return float(low[0]), float(high[0])


def compute_exact_limits(k: float, n: float, tails: Reals) -> tuple[Reals, Reals]:
    """Return the lower and the upper exact limits of k passes in n trials, at each tail probability."""
    low = np.zeros_like(tails) if k == 0 else betaincinv(k, n - k + 1, tails)
    high = np.ones_like(tails) if k == n else betainccinv(k + 1, n - k, tails)
    return low, high
