"""Quantiles of times, with intervals: of one side, and of the difference of two."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from scipy.special import bdtr

from toolbench.evals.statistics.shares import LEVEL

P95_LEAST = 60  # values; below, a p95 is no number
RESAMPLES = 2_000
SEED = 20_260_222  # equal times give equal intervals
AT_ONCE = 250  # resamples held in memory


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile with its distribution-free 95 % interval (order statistics); an end is None where n is too small."""

    value: float
    low: float | None
    high: float | None


def quantile(values: Sequence[float], q: float) -> Quantile:
    """The interpolated quantile of at least one value, with its interval."""
    ordered = sorted(values)
    n, tail = len(ordered), (1 - LEVEL) / 2
    below = bdtr(np.arange(n + 1), n, q)  # the chance that at most so many values lie below the true quantile
    low, high = int(np.searchsorted(below, tail)) - 1, int(np.searchsorted(below, 1 - tail))
    ends = ordered[low] if low >= 0 else None, ordered[high] if high < n else None
    return Quantile(float(np.quantile(ordered, q)), *ends)


def parity_percentile(values: Sequence[float], q: int) -> float:
    """The case study's percentile: without interpolation, place floor(n · q) from 0; 0 without values. Never mixed
    with an interpolated one."""
    return sorted(values)[len(values) * q // 100] if values else 0.0


@dataclass(frozen=True, slots=True)
class Shift:
    """A quantile of the second side less that of the first, with its 95 % bootstrap interval: `method` is BCa (biased
    ends corrected and accelerated), or percentile where times are too alike for its correction. `first` and `second`
    are the quantile itself on each side."""

    value: float
    low: float
    high: float
    method: str
    first: float
    second: float


def quantile_shift(first: Sequence[float], second: Sequence[float], q: float) -> Shift | None:
    """None while a side has fewer than two values, or fewer than P95_LEAST for a quantile above the median.

    scipy imports its statistics when they are first asked for, so that a web process starts without them."""
    if min(len(first), len(second)) < (2 if q <= 0.5 else P95_LEAST):
        return None

    def shift(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(np.quantile(b, q, axis=axis) - np.quantile(a, q, axis=axis))

    sides = (np.asarray(first, dtype=float), np.asarray(second, dtype=float))
    value = float(shift(*sides))
    before, after = (float(np.quantile(side, q)) for side in sides)
    for method in ("BCa", "percentile"):
        low, high = _resampled(sides, shift, method)
        if np.isfinite([low, high]).all():
            break
    return Shift(value, low, high, method, before, after)


def _resampled(
    sides: tuple[np.ndarray, np.ndarray], shift: Callable[..., np.ndarray], method: Literal["BCa", "percentile"]
) -> tuple[float, float]:
    """The ends of the interval; not numbers where BCa cannot correct them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        drawn = scipy.stats.bootstrap(
            sides, shift, n_resamples=RESAMPLES, batch=AT_ONCE, confidence_level=LEVEL, method=method,
            vectorized=True, rng=np.random.default_rng(SEED),
        )  # fmt: skip
    low, high = drawn.confidence_interval
    return float(low), float(high)
