"""Trials needed to detect a difference, and the difference to expect between equal sides."""

from math import ceil, sqrt

from scipy.special import ndtri

from toolbench.evals.statistics.shares import Z

DEFAULT_POWER = 0.8


def count_trials_to_detect(points: float, *, share: float, power: float = DEFAULT_POWER) -> int:
    """Return the trials per side that detect a side which is `points` worse than `share`.

    The test is the exact one at 5 %, by the normal approximation with the correction of Casagrande, Pike and Smith. A
    share too low to be lowered is raised instead.

    Args:
        points: The difference, as a fraction.
        share: The share of the better side, as a fraction.
        power: The share of comparisons that detect the difference.

    Raises:
        ValueError: `points` is not between 0 and 1.
    """
    if not 0 < points < 1:
        raise ValueError(f"a difference is a fraction between 0 and 1, not {points}")
    first = min(max(share, 0.0), 1.0)
    second = first - points if first >= points else min(1.0, first + points)
    gap, mean = abs(first - second), (first + second) / 2
    spread = Z * sqrt(2 * mean * (1 - mean)) + ndtri(power) * sqrt(first * (1 - first) + second * (1 - second))
    plain = (spread / gap) ** 2
    return ceil(plain / 4 * (1 + sqrt(1 + 4 / (plain * gap))) ** 2)


def find_detectable_difference(trials: int, *, share: float, power: float = DEFAULT_POWER) -> float | None:
    """Return the smallest difference that so many trials per side detect, in whole points as a fraction.

    None means that they would detect no difference.
    """
    reachable = (points / 100 for points in range(1, 100) if points / 100 <= max(share, 1 - share))
    return next(
        (points for points in reachable if count_trials_to_detect(points, share=share, power=power) <= trials), None
    )


def compute_aa_noise(share: float, first: int, second: int) -> float:
    """Return the largest difference between two equal settings in 95 of 100 comparisons.

    It is 1 if a side has no trials. The share observed is moved towards one half as in Wilson's interval, because
    nothing but passes is no certainty.
    """
    if not first or not second:
        return 1.0
    tried = first + second
    drawn = (share * tried + Z**2 / 2) / (tried + Z**2)
    return min(1.0, Z * sqrt(drawn * (1 - drawn) * (1 / first + 1 / second)))
