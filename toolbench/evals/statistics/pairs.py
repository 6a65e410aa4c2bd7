"""Paired comparison of two sides that were tried on the same instances.

The difference is d · (2b − 1). d is the share of discordant pairs, in which exactly one side passes; b is the share of
these pairs in which the second side passes. Both shares have exact limits, which are combined for several splits of the
confidence (`combined_limits.py`). The interval excludes 0 exactly if the p-value is at most the error.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from toolbench.evals.statistics.combined_limits import split_tails
from toolbench.evals.statistics.differences import Difference, reconcile_interval_with_test
from toolbench.evals.statistics.shares import compute_exact_limits


def compute_paired_difference(shares: Sequence[tuple[float, float]]) -> Difference | None:
    """Return the difference of the sides' shares over the same instances, with McNemar's exact sign test.

    Args:
        shares: For each instance the share of passed trials on the first and on the second side. An instance counts as
            one pair, however many trials it has on a side.

    Returns:
        The difference; None without instances.
    """
    if not shares:
        return None
    better = sum(second * (1 - first) for first, second in shares)
    worse = sum(first * (1 - second) for first, second in shares)
    discordant, n = better + worse, len(shares)

    def ends(alpha: float) -> tuple[float, float]:
        better_tails, discordant_tails = split_tails(alpha)
        better_low, better_high = compute_exact_limits(better, discordant, better_tails)
        discordant_low, discordant_high = compute_exact_limits(discordant, n, discordant_tails)
        low = (2 * better_low - 1) * np.where(better_low > 0.5, discordant_low, discordant_high)
        high = (2 * better_high - 1) * np.where(better_high < 0.5, discordant_low, discordant_high)
        return float(np.min(low)), float(np.max(high))

    return reconcile_interval_with_test((better - worse) / n, compute_sign_p(better, worse), ends)


def compute_sign_p(better: float, worse: float) -> float:
    """Return the two-sided p-value of the sign test; 1 if both counts are equal.

    Args:
        better: The number of pairs in which only the second side passes; it need not be a whole number.
        worse: The same for pairs in which only the first side passes.
    """
    if better == worse:
        return 1.0
    return min(1.0, 2 * float(betainc(max(better, worse), min(better, worse) + 1, 0.5)))
