"""What may be said of counts and times: the interval of a share, the trials that would decide, where a p95 begins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, ndtri

LEVEL = 0.95
Z = float(ndtri((1 + LEVEL) / 2))
P95_LEAST = 60  # values; below, a p95 is no number


def wilson(k: int, n: int) -> tuple[float, float]:
    """The ends of the 95 % Wilson interval of k of n, as fractions; (0, 1) when nothing was tried. Raises ValueError
    unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    if n == 0:
        return 0.0, 1.0
    share, whole = k / n, 2 * (n + Z**2)
    centre = (2 * n * share + Z**2) / whole
    half = Z / whole * math.sqrt(4 * n * share * (1 - share) + Z**2)
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def more_trials_to_clear(k: int, n: int, target: float) -> int | None:
    """How many more trials at the share seen would lift the interval to `target`, a fraction; None when that share
    never would. Raises ValueError unless the target lies between 0 and 1.

    With a share p, the lower Wilson bound reaches t at n = z² · t(1 - t) / (p - t)²."""
    if not 0 < target < 1:
        raise ValueError(f"a target is a fraction between 0 and 1, not {target}")
    if n == 0 or k / n <= target:
        return None
    needed = math.ceil(Z**2 * target * (1 - target) / (k / n - target) ** 2)
    return max(0, needed - n)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile with its distribution-free 95 % interval (order statistics); an end is None where n is too small."""

    value: float
    low: float | None
    high: float | None


def quantile(values: Sequence[float], q: float) -> Quantile:
    """The interpolated quantile of at least one value, with its interval."""
    ordered = sorted(values)
    n, tail = len(ordered), (1 - LEVEL) / 2
    below = bdtr(np.arange(n + 1), n, q)  # the chance that at most so many values lie below the true quantile
    low, high = int(np.searchsorted(below, tail)) - 1, int(np.searchsorted(below, 1 - tail))
    ends = ordered[low] if low >= 0 else None, ordered[high] if high < n else None
    return Quantile(float(np.quantile(ordered, q)), *ends)


def parity_percentile(values: Sequence[float], q: int) -> float:
    """The case study's percentile: without interpolation, place floor(n · q) from 0; 0 without values. Never mixed
    with an interpolated one."""
    return sorted(values)[len(values) * q // 100] if values else 0.0
