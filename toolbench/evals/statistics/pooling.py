"""Rates over several scenarios with equal weights.

The weight of a scenario does not depend on its number of trials, so that more trials of an easy scenario do not raise
the rate.
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
        k: The number of passes in `n` trials at this share.
        n: The number of independent trials at one rate that would have the same variance.
        method: The name of the interval, Wilson or exact; it does not apply if `error` is set.
        error: The error of an anytime-valid interval, as a probability; None for any other interval.
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

    If any scenario has sequential stopping, the interval is the mean of the scenarios' anytime-valid intervals, each at
    an equal part of the smallest error. Else it is an interval of the pooled `k` and `n`: the exact one if any trials
    are clustered, else Wilson's. Without trials the rate is 0 with the interval (0, 1).
    """
    tried = [part for part in parts if part.n]
    if not tried:
        return PooledRate(0.0, 0.0, 1.0, 0.0, 0.0)
    k, n = _compute_effective_counts(tried)
    error = combine_stoppings(part.stopping for part in tried).error
    if error is not None:
        scenario_error = error / len(tried)
        ends = [compute_interval(int(part.k), part.n, part.stopping.with_error(scenario_error)) for part in tried]
        low, high = (sum(end) / len(tried) for end in zip(*ends, strict=True))
        return PooledRate(k / n, low, high, k, n, error=error)
    is_exact = any(part.clustered for part in tried)
    low, high = (compute_exact_interval if is_exact else compute_wilson_interval)(k, n)
    return PooledRate(k / n, low, high, k, n, "exact" if is_exact else "Wilson")


def count_trials_per_scenario(
    parts: Sequence[ScenarioSample], target: float, indices: Collection[int], *, at_least: int = 0
) -> int | None:
    """Return how many more trials of some scenarios raise the lower end of the pooled rate's interval to `target`.

    The additional trials are assumed to be independent and to pass at the scenario's observed share, or to pass all if
    the scenario has no trials.

    Args:
        parts: The samples of the scenarios.
        target: The target, as a fraction.
        indices: The indices in `parts` of the scenarios that get more trials.
        at_least: The smallest number to return.

    Returns:
        The number of trials for each of these scenarios; None if there are no trials yet, if the pooled share does not
        exceed the target, or if half a million trials of each would be too few.
    """
    pooled = pool_samples(parts)
    if not pooled.n or pooled.share <= target:
        return None

    def reaches_target(trials: int) -> bool:
        enlarged = (_add_trials(part, trials) if index in indices else part for index, part in enumerate(parts))
        return pool_samples(list(enlarged)).low >= target

    low, high = at_least - 1, at_least
    while not reaches_target(high):
        low, high = high, 2 * high + 1
        if high > _MAX_TRIALS_PER_SCENARIO:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches_target(middle) else (middle, high)
    return high


def list_sets_to_enlarge(parts: Sequence[ScenarioSample]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of scenarios that could get more trials, as indices in `parts`.

    The first set has the scenarios with the smallest number of trials. Each further set also has those with the next
    larger number, and the last set has all scenarios.
    """
    levels = sorted({part.n for part in parts})
    return tuple(tuple(index for index, part in enumerate(parts) if part.n <= level) for level in levels)


def _add_trials(part: ScenarioSample, trials: int) -> ScenarioSample:
    """Return the sample with more trials at the same share.

    All of them pass if the scenario has no trials yet. With sequential stopping the number of passes is rounded down.
    """
    n = part.n + trials
    k = n * part.k / part.n if part.n else n
    return ScenarioSample(math.floor(k) if part.stopping.error is not None else k, n, part.stopping, part.clustered)


def _compute_effective_counts(parts: Sequence[ScenarioSample]) -> tuple[float, float]:
    """Return k and n of independent trials at one rate with the share and the variance of the mean share."""
    if len({part.n for part in parts}) == 1:
        return sum(part.k for part in parts), sum(part.n for part in parts)
    share = sum(part.k / part.n for part in parts) / len(parts)
    n = len(parts) ** 2 / sum(1 / part.n for part in parts)
    has_no_failures, has_no_passes = all(part.k == part.n for part in parts), not any(part.k for part in parts)
    return n if has_no_failures else 0.0 if has_no_passes else share * n, n
