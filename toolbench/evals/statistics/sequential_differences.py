"""Anytime-valid intervals and p-values of the difference of two sides, for sequential stopping.

Each side of each scenario has a mixture of likelihoods (`sequential.py`). The product of the mixtures, divided by the
likelihood, is a martingale; rates at which it is at least 1/error are excluded. The interval contains the differences
of the other rates, with Mantel-Haenszel weights; the p-value is the error at which an end of the interval reaches 0.
Interval and p-value assume that a side has one rate in each scenario.
"""

import math
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from toolbench.evals.statistics.differences import Difference, reconcile_interval_with_test
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.sequential import compute_log_mixture

_MAX_MULTIPLIER = 1e9  # at this multiplier of `_compute_tilted_rates` every rate is close to its limit, 0 or 1

SamplePair = tuple[ScenarioSample, ScenarioSample]


def compute_sequential_difference(pairs: Sequence[SamplePair]) -> Difference | None:
    """Return the share of the second side minus that of the first.

    Args:
        pairs: The samples of the first and of the second side, for each scenario.

    Returns:
        The difference; None if no scenario has trials on both sides.
    """
    compared = [pair for pair in pairs if pair[0].n and pair[1].n]
    if not compared:
        return None
    weights = [first.n * second.n / (first.n + second.n) for first, second in compared]
    samples = [sample for pair in compared for sample in pair]
    signed_weights = [sign * weight / sum(weights) for weight in weights for sign in (-1.0, 1.0)]
    value = sum(weight * sample.k / sample.n for weight, sample in zip(signed_weights, samples, strict=True))

    def ends(alpha: float) -> tuple[float, float]:
        low = -_find_upper_limit(samples, [-weight for weight in signed_weights], alpha)
        return min(low, value), max(_find_upper_limit(samples, signed_weights, alpha), value)

    return reconcile_interval_with_test(value, _compute_null_likelihood_ratio(samples, signed_weights), ends)


def _compute_null_likelihood_ratio(samples: Sequence[ScenarioSample], weights: Sequence[float]) -> float:
    """Return the highest likelihood of the counts at a difference of 0, divided by the mixture; at most 1.

    It is the anytime-valid p-value of the test whether the difference is 0.

    Args:
        samples: The samples of both sides in all scenarios.
        weights: The weight of each sample's rate in the difference, negative for the first side.
    """
    multiplier = float(
        brentq(
            lambda multiplier: _sum_weighted_rates(_compute_tilted_rates(samples, weights, multiplier), weights),
            -_MAX_MULTIPLIER,
            _MAX_MULTIPLIER,
        )
    )
    rates = _compute_tilted_rates(samples, weights, multiplier)
    return math.exp(-max(0.0, _sum_log_mixtures(samples) - _compute_log_likelihood(samples, rates)))


def _find_upper_limit(samples: Sequence[ScenarioSample], weights: Sequence[float], alpha: float) -> float:
    """Return the largest weighted sum of rates that is not excluded at the error `alpha`.

    For a multiplier m, `_compute_tilted_rates` returns the rates that maximise the log likelihood plus m times the
    weighted sum. This function finds the m at which the log likelihood falls to the threshold, and uses _MAX_MULTIPLIER
    if the log likelihood stays above it.
    """
    threshold = _sum_log_mixtures(samples) + math.log(alpha)

    def compute_excess(multiplier: float) -> float:
        return threshold - _compute_log_likelihood(samples, _compute_tilted_rates(samples, weights, multiplier))

    are_rates_at_limits = compute_excess(_MAX_MULTIPLIER) <= 0
    multiplier = _MAX_MULTIPLIER if are_rates_at_limits else float(brentq(compute_excess, 0.0, _MAX_MULTIPLIER))
    return _sum_weighted_rates(_compute_tilted_rates(samples, weights, multiplier), weights)


def _sum_log_mixtures(samples: Sequence[ScenarioSample]) -> float:
    return sum(compute_log_mixture(int(sample.k), sample.n) for sample in samples)


def _compute_log_likelihood(samples: Sequence[ScenarioSample], rates: Sequence[float]) -> float:
    return sum(
        float(xlogy(sample.k, rate) + xlog1py(sample.n - sample.k, -rate))
        for sample, rate in zip(samples, rates, strict=True)
    )


def _compute_tilted_rates(
    samples: Sequence[ScenarioSample], weights: Sequence[float], multiplier: float
) -> list[float]:
    return [_compute_tilted_rate(sample, multiplier * weight) for sample, weight in zip(samples, weights, strict=True)]


def _sum_weighted_rates(rates: Sequence[float], weights: Sequence[float]) -> float:
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True))


def _compute_tilted_rate(sample: ScenarioSample, slope: float) -> float:
    """Return the rate at which the derivative of the log likelihood is −`slope`; the observed share if `slope` is 0."""
    if not slope:
        return sample.k / sample.n
    root = math.sqrt((sample.n - slope) ** 2 + 4 * slope * sample.k)
    rate = 2 * sample.k / (sample.n - slope + root) if sample.n > slope else (slope - sample.n + root) / 2 / slope
    return min(1.0, max(0.0, rate))
