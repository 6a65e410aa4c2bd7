"""Numbers of trials and the differences that they can detect, and the A/A noise between equal settings."""

from math import ceil, sqrt

from scipy.special import ndtri

from toolbench.evals.statistics.shares import Z

POWER = 0.8  # the probability of detecting the difference


def count_trials_to_detect(difference: float, *, share: float) -> int:
    """Return the number of trials per side that detects a difference with the probability POWER.

    The number is for the exact test at 5 %, by the normal approximation with the correction of Casagrande, Pike and
    Smith.

    Args:
        difference: The difference, as a fraction.
        share: The success of the first side, as a fraction. The second side is lower by `difference`; if `share` is
            smaller than `difference`, the second side is higher by it, but at most 1.

    Raises:
        ValueError: `difference` is not between 0 and 1.
    """
    if not 0 < difference < 1:
        raise ValueError(f"a difference is a fraction between 0 and 1, not {difference}")
    first = min(max(share, 0.0), 1.0)
    second = first - difference if first >= difference else min(1.0, first + difference)
    gap, mean = abs(first - second), (first + second) / 2
    spread = Z * sqrt(2 * mean * (1 - mean)) + ndtri(POWER) * sqrt(first * (1 - first) + second * (1 - second))
    uncorrected = (spread / gap) ** 2
    return ceil(uncorrected / 4 * (1 + sqrt(1 + 4 / (uncorrected * gap))) ** 2)


def find_detectable_difference(trials: int, *, share: float) -> float | None:
    """Return the smallest difference that a number of trials per side detects with the probability POWER.

    Args:
        trials: The number of trials per side.
        share: The success of the first side, as a fraction.

    Returns:
        The difference as a fraction, rounded up to whole percentage points; None if no possible difference is detected.
    """
    # Differences that are not possible need no check: with them the second side has the share 1, which needs at least
    # as many trials as the largest possible difference.
    differences = (points / 100 for points in range(1, 100))
    detected = (d for d in differences if count_trials_to_detect(d, share=share) <= trials)
    return next(detected, None)


def compute_aa_noise(share: float, first: int, second: int) -> float:
    """Return the difference that two equal settings do not exceed in 95 of 100 comparisons, as a fraction.

    The observed share is shrunk towards one half as in Wilson's interval, so that the noise is not 0 if all trials
    pass.

    Args:
        share: The observed share of both sides together, as a fraction.
        first: The number of trials of the first side.
        second: The number of trials of the second side.

    Returns:
        The difference; 1 if a side has no trials.
    """
    if not first or not second:
        return 1.0
    total = first + second
    shrunk = (share * total + Z**2 / 2) / (total + Z**2)
    return min(1.0, Z * sqrt(shrunk * (1 - shrunk) * (1 / first + 1 / second)))
