"""What may be said of counts and times: intervals, the trials that would decide, percentiles of both kinds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from scipy.stats import binomtest, norm

LEVEL = 0.95
P95_LEAST = 60
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Rate:
    """k of n with its Wilson interval, all but the counts as fractions; None where n is 0."""

    k: int
    n: int
    value: float | None
    low: float | None
    high: float | None

    def clears(self, target: float) -> bool:
        """True when the whole interval is at the target or above."""
        return self.low is not None and self.low >= target

    def misses(self, target: float) -> bool:
        """True when the whole interval is below the target."""
        return self.high is not None and self.high < target


def rate(k: int, n: int, *, level: float = LEVEL) -> Rate:
    """Raises ValueError unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no rate")
    if n == 0:
        return Rate(0, 0, None, None, None)
    interval = binomtest(k, n).proportion_ci(level, method="wilson")
    return Rate(k, n, k / n, float(interval.low), float(interval.high))


def passes_needed(target: float, *, level: float = LEVEL) -> int:
    """How many trials, all of them passed, lift the lower bound to the target: 73 for 95 %."""
    _check_open(target)
    z2 = float(norm.ppf((1 + level) / 2)) ** 2
    return math.ceil(z2 * target / (1 - target))


def more_trials_to_clear(k: int, n: int, target: float, *, level: float = LEVEL) -> int | None:
    """How many more trials at the rate seen would clear the target; None when that rate never would.

    With a rate p, the lower Wilson bound reaches t at n = z² · t(1 - t) / (p - t)²."""
    _check_open(target)
    if n == 0 or k / n <= target:
        return None
    z2 = float(norm.ppf((1 + level) / 2)) ** 2
    needed = math.ceil(z2 * target * (1 - target) / (k / n - target) ** 2)
    return max(0, needed - n)


def clear_winner(rates: Sequence[Rate]) -> int | None:
    """The place of the one rate whose interval lies above all others, else None: there is no clear winner."""
    known = [(one.low, place) for place, one in enumerate(rates) if one.low is not None]
    if not known:
        return None
    low, best = max(known)
    others = (one.high for place, one in enumerate(rates) if place != best and one.high is not None)
    return best if all(high < low for high in others) else None


def trials_to_tell_apart(first: float, second: float, *, level: float = LEVEL, power: float = POWER) -> int | None:
    """Trials per side that show the difference of two rates with the given power; None when they are equal.

    The usual normal approximation for two independent proportions."""
    if first == second:
        return None
    middle = (first + second) / 2
    chance = norm.ppf((1 + level) / 2) * math.sqrt(2 * middle * (1 - middle))
    spread = norm.ppf(power) * math.sqrt(first * (1 - first) + second * (1 - second))
    return math.ceil(float((chance + spread) / (first - second)) ** 2)


def why_withheld(trials: int, distinct: int, *, deterministic: bool) -> str:
    """Why no interval may be shown, "" when it may. `deterministic`: temperature 0, an honoured seed or cached answers
    to identical requests, so that repeats need not be independent."""
    if not deterministic or distinct >= trials:
        return ""
    return f"{trials} repeats, {distinct} distinct"


def percentile(values: Sequence[float], q: int) -> float | None:
    """The q-th percentile, interpolated. p95 is withheld (None) under 60 values, and everything without values."""
    if not values or (q >= 95 and len(values) < P95_LEAST):
        return None
    return quantiles(values, n=100, method="inclusive")[q - 1] if len(values) > 1 else values[0]


def parity_index(count: int, q: int) -> int:
    """The case study's place of a percentile in sorted values: floor(n · q), from 0, in integers."""
    return count * q // 100


def parity_percentile(values: Sequence[float], q: int) -> float:
    """The case study's percentile, without interpolation; 0 without values. Never mixed with the interpolated one."""
    return sorted(values)[parity_index(len(values), q)] if values else 0.0


def _check_open(target: float) -> None:
    if not 0 < target < 1:
        raise ValueError(f"a target is a fraction between 0 and 1, not {target}")
