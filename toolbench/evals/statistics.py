"""What may be said of counts and times: the interval of a share, the trials that would decide, where a p95 begins."""

import math
from collections.abc import Sequence

from scipy.stats import binomtest, norm

LEVEL = 0.95
P95_LEAST = 60  # values; below, a p95 is no number


def wilson(k: int, n: int) -> tuple[float, float]:
    """The ends of the 95 % Wilson interval of k of n, as fractions; (0, 1) when nothing was tried. Raises ValueError
    unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    if n == 0:
        return 0.0, 1.0
    interval = binomtest(k, n).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def more_trials_to_clear(k: int, n: int, target: float) -> int | None:
    """How many more trials at the share seen would lift the interval to `target`, a fraction; None when that share
    never would. Raises ValueError unless the target lies between 0 and 1.

    With a share p, the lower Wilson bound reaches t at n = z² · t(1 - t) / (p - t)²."""
    if not 0 < target < 1:
        raise ValueError(f"a target is a fraction between 0 and 1, not {target}")
    if n == 0 or k / n <= target:
        return None
    z2 = float(norm.ppf((1 + LEVEL) / 2)) ** 2
    needed = math.ceil(z2 * target * (1 - target) / (k / n - target) ** 2)
    return max(0, needed - n)


def parity_percentile(values: Sequence[float], q: int) -> float:
    """The case study's percentile: without interpolation, place floor(n · q) from 0; 0 without values. Never mixed
    with an interpolated one."""
    return sorted(values)[len(values) * q // 100] if values else 0.0
