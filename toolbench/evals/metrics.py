"""Formulas that are more than one count over another. Every metric is explained, with an example that is also its test,
in docs/metrics.md."""

from math import comb


def compute_pass_hat(passed: int, tried: int, k: int) -> float | None:
    """pass^k: the chance that k tries all pass, without bias: C(passed, k) / C(tried, k). None with fewer than k
    tries. Raises ValueError unless 0 <= passed <= tried and k >= 1."""
    _check_counts(passed, tried, k)
    return comb(passed, k) / comb(tried, k) if tried >= k else None


def compute_pass_at(passed: int, tried: int, k: int) -> float | None:
    """pass@k: the chance that at least one of k tries passes, without bias: 1 - C(failed, k) / C(tried, k). None with
    fewer than k tries. Raises ValueError as above."""
    _check_counts(passed, tried, k)
    return 1 - comb(tried - passed, k) / comb(tried, k) if tried >= k else None


def compute_f1(rightly: int, needlessly: int, missed: int) -> float | None:
    """The harmonic mean of precision and recall; None where no call was due and none was made."""
    whole = 2 * rightly + needlessly + missed
    return 2 * rightly / whole if whole else None


def compute_cost_per_success(cost: float | None, passed: int) -> float | None:
    """What was paid for one pass; None while the cost is unknown or nothing passed."""
    return None if cost is None or not passed else cost / passed


def _check_counts(passed: int, tried: int, k: int) -> None:
    if not 0 <= passed <= tried or k < 1:
        raise ValueError(f"{passed} of {tried} with k = {k} is no estimate")
