"""Anytime-valid intervals and p-values of the difference of two sides, for sequential stopping.

Each side of each scenario has a mixture of likelihoods (`sequential.py`). The product of the mixtures divided by the
likelihood is a martingale; rates at which it is at least 1/error are excluded. The interval contains the differences of
the other rates, with Mantel-Haenszel weights; the p-value is the error at which its end reaches 0. Both assume that a
side has one rate in each scenario.
"""

import math
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from toolbench.evals.statistics.differences import Difference, reconcile_interval_with_test
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.sequential import compute_log_mixture

_MAX_MULTIPLIER = 1e9  # at this multiplier the rates are at their limits, 0 or 1

SamplePair = tuple[ScenarioSample, ScenarioSample]


def compute_sequential_difference(pairs: Sequence[SamplePair]) -> Difference | None:
    """Return the second side minus the first; None if no scenario has trials on both sides.

    Args:
        pairs: The samples of the first and of the second side, for each scenario.
    """
    compared = [pair for pair in pairs if pair[0].n and pair[1].n]
    if not compared:
        return None
    weights = [first.n * second.n / (first.n + second.n) for first, second in compared]
    shares = [weight / sum(weights) for weight in weights]
    parts = [part for pair in compared for part in pair]
    signs = [sign * share for share in shares for sign in (-1.0, 1.0)]
    value = sum(sign * part.k / part.n for sign, part in zip(signs, parts, strict=True))

    def ends(alpha: float) -> tuple[float, float]:
        low, high = -_find_upper_limit(parts, [-sign for sign in signs], alpha), _find_upper_limit(parts, signs, alpha)
        return min(low, value), max(high, value)

    return reconcile_interval_with_test(value, _compute_null_likelihood_ratio(parts, signs), ends)


def _compute_null_likelihood_ratio(parts: Sequence[ScenarioSample], weights: Sequence[float]) -> float:
    """Return the highest likelihood of the counts without a difference, divided by the mixture; at most 1."""
    multiplier = float(
        brentq(
            lambda multiplier: _sum_weighted_rates(_compute_tilted_rates(parts, weights, multiplier), weights),
            -_MAX_MULTIPLIER,
            _MAX_MULTIPLIER,
        )
    )
    rates = _compute_tilted_rates(parts, weights, multiplier)
    return math.exp(-max(0.0, _sum_log_mixtures(parts) - _compute_log_likelihood(parts, rates)))


def _find_upper_limit(parts: Sequence[ScenarioSample], weights: Sequence[float], alpha: float) -> float:
    """Return the largest weighted sum of rates that is not excluded.

    It is the maximum under a constraint on the log likelihood, found by a Lagrange multiplier: the constraint holds
    with equality at the multiplier, or the rates are at their limits.
    """
    threshold = _sum_log_mixtures(parts) + math.log(alpha)

    def compute_excess(multiplier: float) -> float:
        return threshold - _compute_log_likelihood(parts, _compute_tilted_rates(parts, weights, multiplier))

    is_unbounded = compute_excess(_MAX_MULTIPLIER) <= 0
    multiplier = _MAX_MULTIPLIER if is_unbounded else float(brentq(compute_excess, 0.0, _MAX_MULTIPLIER))
    return _sum_weighted_rates(_compute_tilted_rates(parts, weights, multiplier), weights)


def _sum_log_mixtures(parts: Sequence[ScenarioSample]) -> float:
    return sum(compute_log_mixture(int(part.k), part.n) for part in parts)


def _compute_log_likelihood(parts: Sequence[ScenarioSample], rates: Sequence[float]) -> float:
    return sum(
        float(xlogy(part.k, rate) + xlog1py(part.n - part.k, -rate)) for part, rate in zip(parts, rates, strict=True)
    )


def _compute_tilted_rates(parts: Sequence[ScenarioSample], weights: Sequence[float], multiplier: float) -> list[float]:
    return [_compute_tilted_rate(part, multiplier * weight) for part, weight in zip(parts, weights, strict=True)]


def _sum_weighted_rates(rates: Sequence[float], weights: Sequence[float]) -> float:
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True))


def _compute_tilted_rate(part: ScenarioSample, slope: float) -> float:
    """Return the rate at which the derivative of the log likelihood is −`slope`."""
    if not slope:
        return part.k / part.n
    root = math.sqrt((part.n - slope) ** 2 + 4 * slope * part.k)
    rate = 2 * part.k / (part.n - slope + root) if part.n > slope else (slope - part.n + root) / 2 / slope
    return min(1.0, max(0.0, rate))
