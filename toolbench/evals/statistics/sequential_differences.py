"""Anytime-valid intervals and p-values of the difference of two sides, for sequential stopping.

Every side of every scenario has its mixture of likelihoods (`sequential.py`). Their product is a martingale too, so
rates at which it is 1/error times the likelihood are excluded together. The interval contains the remaining
differences, with Mantel-Haenszel weights; the p-value is the error at which its end reaches 0. Both assume that one
side has one rate in one scenario.
"""

import math
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from toolbench.evals.statistics.differences import Difference, reconcile_interval_with_test
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.sequential import compute_log_mixture

_MAX_MULTIPLIER = 1e9  # stands for infinity: the rates have then reached their extremes

SamplePair = tuple[ScenarioSample, ScenarioSample]


def compute_sequential_difference(pairs: Sequence[SamplePair]) -> Difference | None:
    """Return the second side less the first; None if no scenario has trials on both sides."""
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
    """Return the highest likelihood of the counts without a difference, relative to the mixture; at most 1."""
    pull = float(
        brentq(
            lambda pull: _weight_rates(_compute_tilted_rates(parts, weights, pull), weights),
            -_MAX_MULTIPLIER,
            _MAX_MULTIPLIER,
        )
    )
    evidence = _sum_log_mixtures(parts) - _compute_log_likelihood(parts, _compute_tilted_rates(parts, weights, pull))
    return math.exp(-max(0.0, evidence))


def _find_upper_limit(parts: Sequence[ScenarioSample], weights: Sequence[float], alpha: float) -> float:
    """Return the largest weighted sum of rates that is not excluded.

    At a multiplier (`pull`) each rate is where its likelihood falls as steeply as the sum rises. The multiplier found
    is the one at which all rates together are just not excluded.
    """
    least = _sum_log_mixtures(parts) + math.log(alpha)

    def left_out(pull: float) -> float:
        return least - _compute_log_likelihood(parts, _compute_tilted_rates(parts, weights, pull))

    pull = _MAX_MULTIPLIER if left_out(_MAX_MULTIPLIER) <= 0 else float(brentq(left_out, 0.0, _MAX_MULTIPLIER))
    return _weight_rates(_compute_tilted_rates(parts, weights, pull), weights)


def _sum_log_mixtures(parts: Sequence[ScenarioSample]) -> float:
    return sum(compute_log_mixture(int(part.k), part.n) for part in parts)


def _compute_log_likelihood(parts: Sequence[ScenarioSample], rates: Sequence[float]) -> float:
    return sum(
        float(xlogy(part.k, rate) + xlog1py(part.n - part.k, -rate)) for part, rate in zip(parts, rates, strict=True)
    )


def _compute_tilted_rates(parts: Sequence[ScenarioSample], weights: Sequence[float], pull: float) -> list[float]:
    return [_compute_tilted_rate(part, pull * weight) for part, weight in zip(parts, weights, strict=True)]


def _weight_rates(rates: Sequence[float], weights: Sequence[float]) -> float:
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True))


def _compute_tilted_rate(part: ScenarioSample, pull: float) -> float:
    if not pull:
        return part.k / part.n
    root = math.sqrt((part.n - pull) ** 2 + 4 * pull * part.k)
    return min(
        1.0, max(0.0, 2 * part.k / (part.n - pull + root) if part.n > pull else (pull - part.n + root) / 2 / pull)
    )
