"""Anytime-valid intervals: they are valid at every interim analysis.

An ordinary interval is valid for a number of trials that was fixed beforehand. If trials continue until it shows a
hoped-for result, it errs far more often than stated. These intervals come from nonnegative martingales by Ville's
inequality: Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard, Ramdas, McAuliffe
and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of Statistics 49(2).
"""

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy

_BETA_PRIOR = 0.5  # the mixture is Beta(1/2, 1/2): narrow near 0 and 1, where useful rates lie
_MIXTURE_VARIANCE = 2.0  # the pooled interval is tightest when n/4 is about eight times this: some 60 trials
_RATE_EPSILON = 1e-12


@lru_cache(maxsize=16384)
def compute_anytime_interval(k: int, n: int, error: float) -> tuple[float, float]:
    """Return the anytime-valid interval of one rate after k passes in n independent trials, as fractions.

    The probability that it ever excludes the rate, at any interim analysis, is at most `error`. A rate p is excluded if
    the beta-binomial mixture of likelihoods is at least 1/error times the likelihood at p. Without trials the interval
    is (0, 1).

    Raises:
        ValueError: Not 0 <= k <= n, or not 0 < error < 1.
    """
    _check_arguments(k, n, error)
    if n == 0:
        return 0.0, 1.0
    mixture = compute_log_mixture(k, n) + math.log(error)

    def beyond(p: float) -> float:
        return mixture - float(xlogy(k, p) + xlog1py(n - k, -p))

    share = k / n
    low = 0.0 if k == 0 or beyond(_RATE_EPSILON) <= 0 else float(brentq(beyond, _RATE_EPSILON, share))
    high = 1.0 if k == n or beyond(1 - _RATE_EPSILON) <= 0 else float(brentq(beyond, share, 1 - _RATE_EPSILON))
    return low, high


def compute_log_mixture(k: int, n: int) -> float:
    """Return the logarithm of the mixture of likelihoods of k passes in n trials."""
    return float(betaln(k + _BETA_PRIOR, n - k + _BETA_PRIOR) - betaln(_BETA_PRIOR, _BETA_PRIOR))


@lru_cache(maxsize=16384)
def compute_anytime_mean_interval(k: int, n: int, error: float) -> tuple[float, float]:
    """Return the anytime-valid interval of the mean rate of trials whose rates differ, as fractions.

    It is meant for added counts of cells with sequential stopping and covers the mean of the rates of the trials that
    were made. For rates near 1 it is wider than the interval of one rate, because it cannot use that they are equal. It
    comes from the mixture of normal laws over sub-Gaussian sums with variance 1/4 each.

    Raises:
        ValueError: Not 0 <= k <= n, or not 0 < error < 1.
    """
    _check_arguments(k, n, error)
    if n == 0:
        return 0.0, 1.0
    spread = n / 4 + _MIXTURE_VARIANCE
    half = math.sqrt(spread * math.log(spread / (_MIXTURE_VARIANCE * error**2))) / n
    return max(0.0, k / n - half), min(1.0, k / n + half)


def _check_arguments(k: int, n: int, error: float) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    if not 0 < error < 1:
        raise ValueError(f"an error is a fraction between 0 and 1, not {error}")
