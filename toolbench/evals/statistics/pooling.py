"""Rates over several equally weighted scenarios.

Each scenario has the same weight for any number of trials, so that more trials of an easy scenario improve no rate.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolbench.evals.statistics.intervals import ScenarioSample, combine_stoppings, compute_interval
from toolbench.evals.statistics.shares import compute_exact_interval, compute_wilson_interval

_MAX_TRIALS_PER_SCENARIO = 1_000_000


@dataclass(frozen=True, slots=True)
class PooledRate:
    """A share with its interval, as fractions.

    Attributes:
        k: Passes among `n`.
        n: The trials that would have the same variance if all scenarios were equal.
        method: The name of the interval's method.
        error: The error of an anytime-valid interval; None for any other.
    """

    share: float
    low: float
    high: float
    k: float
    n: float
    method: str = "Wilson"
    error: float | None = None


def pool_samples(parts: Sequence[ScenarioSample]) -> PooledRate:
    """Return the mean share over the scenarios that have trials, with its interval.

    For equally many independent trials per scenario, fixed beforehand, it is Wilson's interval of all trials. With
    sequential stopping in any cell it is the mean of the scenarios' anytime-valid intervals, each at its part of the
    error. With clustered trials it is the exact interval at the effective sample size. Without trials the rate is 0
    with the interval (0, 1).
    """
    tried = [part for part in parts if part.n]
    if not tried:
        return PooledRate(0.0, 0.0, 1.0, 0.0, 0.0)
    k, n = _compute_effective_counts(tried)
    error = combine_stoppings(part.stopping for part in tried).error
    if error is not None:
        share_of_error = error / len(tried)
        ends = [compute_interval(int(part.k), part.n, part.stopping.with_error(share_of_error)) for part in tried]
        low, high = (sum(end) / len(tried) for end in zip(*ends, strict=True))
        return PooledRate(k / n, low, high, k, n, error=error)
    exact = any(part.clustered for part in tried)
    low, high = (compute_exact_interval if exact else compute_wilson_interval)(k, n)
    return PooledRate(k / n, low, high, k, n, "exact" if exact else "Wilson")


def count_trials_per_scenario(parts: Sequence[ScenarioSample], target: float, places: Collection[int]) -> int | None:
    """Return how many more trials of each scenario at `places` lift the lower bound to `target`.

    The trials are assumed to be independent and to pass at the share observed. A scenario without trials is assumed to
    pass.

    Args:
        parts: The scenarios.
        target: A fraction.
        places: Indices in `parts`.

    Returns:
        The number per scenario; None if no number of trials would do.
    """
    pooled = pool_samples(parts)
    if not pooled.n or pooled.share <= target:
        return None

    def clears(more: int) -> bool:
        grown = (_add_trials(part, more) if place in places else part for place, part in enumerate(parts))
        return pool_samples(list(grown)).low >= target

    low, high = -1, 0
    while not clears(high):
        low, high = high, 2 * high + 1
        if high > _MAX_TRIALS_PER_SCENARIO:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if clears(middle) else (middle, high)
    return high


def list_smallest_samples(parts: Sequence[ScenarioSample]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of scenarios that could get more trials, as indices.

    The first set has the scenarios with the fewest trials, each further set also those with the next number; the last
    has all.
    """
    levels = sorted({part.n for part in parts})
    return tuple(tuple(place for place, part in enumerate(parts) if part.n <= level) for level in levels)


def _add_trials(part: ScenarioSample, more: int) -> ScenarioSample:
    """Return the sample with `more` trials at its own share; with sequential stopping passes are rounded down."""
    n = part.n + more
    k = n * part.k / part.n if part.n else n
    return ScenarioSample(math.floor(k) if part.stopping.error is not None else k, n, part.stopping, part.clustered)


def _compute_effective_counts(parts: Sequence[ScenarioSample]) -> tuple[float, float]:
    if len({part.n for part in parts}) == 1:
        return sum(part.k for part in parts), sum(part.n for part in parts)
    share = sum(part.k / part.n for part in parts) / len(parts)
    n = len(parts) ** 2 / sum(1 / part.n for part in parts)
    all_passed, none = all(part.k == part.n for part in parts), not any(part.k for part in parts)
    return n if all_passed else 0.0 if none else share * n, n
