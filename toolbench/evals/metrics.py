"""Metrics whose formula is more than one count divided by another.

docs/metrics.md explains every metric, with an example that a test checks.
"""

from math import comb


def compute_pass_hat(passed: int, tried: int, k: int) -> float | None:
    """Return pass^k, the probability that k trials all pass.

    C(passed, k) / C(tried, k) is an unbiased estimate from `tried` trials, if `passed` of them pass.

    Returns:
        The estimate; None if `tried` is less than k.

    Raises:
        ValueError: The counts do not satisfy 0 <= passed <= tried, or k is less than 1.
    """
    _check_counts(passed, tried, k)
    return comb(passed, k) / comb(tried, k) if tried >= k else None


def compute_pass_at(passed: int, tried: int, k: int) -> float | None:
    """Return pass@k, the probability that at least one of k trials passes.

    1 - C(tried - passed, k) / C(tried, k) is an unbiased estimate from `tried` trials, if `passed` of them pass.

    Returns:
        The estimate; None if `tried` is less than k.

    Raises:
        ValueError: The counts do not satisfy 0 <= passed <= tried, or k is less than 1.
    """
    _check_counts(passed, tried, k)
    return 1 - comb(tried - passed, k) / comb(tried, k) if tried >= k else None


def compute_f1(rightly: int, needlessly: int, missed: int) -> float | None:
    """Return F1, the harmonic mean of trigger precision and recall.

    Args:
        rightly: The number of trials that needed a call and made one.
        needlessly: The number of trials that made a call without need.
        missed: The number of trials that needed a call and made none.

    Returns:
        F1; None if all three counts are 0.
    """
    denominator = 2 * rightly + needlessly + missed
    return 2 * rightly / denominator if denominator else None


def _check_counts(passed: int, tried: int, k: int) -> None:
    if not 0 <= passed <= tried or k < 1:
        raise ValueError(f"cannot estimate from {passed} passes of {tried} trials with k = {k}")
