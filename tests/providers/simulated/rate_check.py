"""Comparison of a count with a published rate."""

from scipy import stats

CONFIDENCE = 0.999


def is_near_published_rate(count: int, total: int, rate: float) -> bool:
    """Return whether the count is in the exact binomial interval of 999 in 1,000 counts; at a rate of 0 or 1, exact."""
    low, high = stats.binom.interval(CONFIDENCE, total, rate)
    return bool(low <= count <= high)
