"""Is one side better than the other, where trials went on until something was decided? An interval and a p-value of the
difference that hold at every look.

Every side of every scenario has its mixture of likelihoods (`sequential.py`); their product is a martingale too, so
rates at which it is 1/error times the likelihood are left out, all together. The interval is what is left of the
difference, weighed as Mantel and Haenszel do; the p-value asks whether the sides may be equal in every scenario. Both
take the rate of one side in one scenario for one rate."""

import math
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from toolbench.evals.statistics.differences import ALPHA, Difference
from toolbench.evals.statistics.intervals import Part
from toolbench.evals.statistics.sequential import log_mixture

_MOST_PULL = 1e9  # towards an end: rates are then as far off as they can be

Pair = tuple[Part, Part]


def sequential_difference(pairs: Sequence[Pair]) -> Difference | None:
    """The second side less the first; None where no stratum was tried on both."""
    compared = [pair for pair in pairs if pair[0].n and pair[1].n]
    if not compared:
        return None
    weights = [first.n * second.n / (first.n + second.n) for first, second in compared]
    shares = [weight / sum(weights) for weight in weights]
    parts = [part for pair in compared for part in pair]
    signs = [sign * share for share in shares for sign in (-1.0, 1.0)]
    value = sum(sign * part.k / part.n for sign, part in zip(signs, parts, strict=True))
    low, high = -_furthest(parts, [-sign for sign in signs]), _furthest(parts, signs)
    return Difference(value, min(low, value), max(high, value), min(1.0, math.exp(-sum(map(_evidence, compared)))))


def _evidence(pair: Pair) -> float:
    """The logarithm of how much likelier both sides are apart than with one rate, the likeliest for both."""
    k, n = pair[0].k + pair[1].k, pair[0].n + pair[1].n
    alike = float(xlogy(k, k / n) + xlog1py(n - k, -k / n))
    return sum(log_mixture(part.k, part.n) for part in pair) - alike


def _furthest(parts: Sequence[Part], weights: Sequence[float]) -> float:
    """The most that the weighed sum of rates may be. At a pull each rate is where its likelihood falls as steeply as
    the sum rises; the pull is the one at which all together are just not left out."""
    room = -math.log(ALPHA) - sum(log_mixture(part.k, part.n) for part in parts)

    def rates(pull: float) -> list[float]:
        return [_pulled(part, pull * weight) for part, weight in zip(parts, weights, strict=True)]

    def left_out(pull: float) -> float:
        likely = (
            float(xlogy(p.k, rate) + xlog1py(p.n - p.k, -rate)) for p, rate in zip(parts, rates(pull), strict=True)
        )
        return -sum(likely) - room

    pull = _MOST_PULL if left_out(_MOST_PULL) <= 0 else float(brentq(left_out, 0.0, _MOST_PULL))
    return sum(weight * rate for weight, rate in zip(weights, rates(pull), strict=True))


def _pulled(part: Part, pull: float) -> float:
    if not pull:
        return part.k / part.n
    root = math.sqrt((part.n - pull) ** 2 + 4 * pull * part.k)
    return min(
        1.0, max(0.0, 2 * part.k / (part.n - pull + root) if part.n > pull else (pull - part.n + root) / 2 / pull)
    )
