"""Paired comparison of two sides on the same instances: only pairs that differ show which side is better.

The difference is the share of pairs that differ times the balance of the directions. Both have exact limits, which
`combined_limits.py` combines. The interval excludes 0 exactly if the sign test rejects equal sides.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from toolbench.evals.statistics.combined_limits import split_tails
from toolbench.evals.statistics.differences import Difference, reconcile_interval_with_test
from toolbench.evals.statistics.shares import compute_exact_limits


def compute_paired_difference(shares: Sequence[tuple[float, float]]) -> Difference | None:
    """Return the difference over shared instances, with the exact sign test (McNemar's); None without instances.

    Args:
        shares: For each instance the share of trials that passed on the first and on the second side. An instance with
            several trials on a side counts as one pair: the mean over all pairs of one trial of each side.
    """
    if not shares:
        return None
    better = sum(second * (1 - first) for first, second in shares)
    worse = sum(first * (1 - second) for first, second in shares)
    differing, n = better + worse, len(shares)

    def ends(alpha: float) -> tuple[float, float]:
        direction, how_many = split_tails(alpha)
        favour_low, favour_high = compute_exact_limits(better, differing, direction)
        few, most_discordant = compute_exact_limits(differing, n, how_many)
        low = (2 * favour_low - 1) * np.where(favour_low > 0.5, few, most_discordant)
        high = (2 * favour_high - 1) * np.where(favour_high < 0.5, few, most_discordant)
        return float(np.min(low)), float(np.max(high))

    return reconcile_interval_with_test((better - worse) / n, compute_sign_p(better, worse), ends)


def compute_sign_p(better: float, worse: float) -> float:
    """Return the two-sided p-value of the sign test; 1 if both counts are equal."""
    if better == worse:
        return 1.0
    return min(1.0, 2 * float(betainc(max(better, worse), min(better, worse) + 1, 0.5)))
