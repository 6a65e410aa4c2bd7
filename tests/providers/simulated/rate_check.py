"""Whether what was counted is what was published."""

from scipy import stats

CONFIDENCE = 0.999


def is_near_published_rate(seen: int, of: int, rate: float) -> bool:
    """Within the exact binomial interval that holds 999 of 1,000 counts; at a rate of 0 or 1 the count itself."""
    least, most = stats.binom.interval(CONFIDENCE, of, rate)
    return bool(least <= seen <= most)
