"""Drift: a sequential test of whether the success of repeated runs differs from a baseline.

Half of the error pays for not knowing the baseline's rate: the runs are tested against its confidence bound (Clopper
and Pearson 1934). The other half pays for the runs: the evidence against "at least this rate" is an e-process, which
reaches 1/error with a probability of at most `error`, however often it is read (Ville's inequality; Ramdas, Grünwald,
Vovk and Shafer (2023), Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38(4)).
docs/trend.md has the derivation and a simulation.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, logsumexp, xlogy

Floats = NDArray[np.float64]
# Rates that the evidence is looked for at, as shares of the bound: averaged, so that no size of a drop is planned.
_DROPS = np.arange(0.05, 1.0, 0.1)


@dataclass(frozen=True, slots=True)
class RunSample:
    """The trials of one run that count for one configuration.

    Attributes:
        passed: passed trials.
        answered: trials by scenario and its version.
    """

    passed: int
    answered: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """All trials that count."""
        return sum(count for _, count in self.answered)

    @property
    def mirrored(self) -> "RunSample":
        """The sample with failures in place of passes."""
        return RunSample(self.total - self.passed, self.answered)


@dataclass(frozen=True, slots=True)
class Drift:
    """A change that the test found.

    Attributes:
        detected: index of the run, among those since the baseline, at which the evidence reached its bound.
        begins: index of the run at which the change most likely began.
        points: success from there on less success of the baseline, in points; negative for a drop.
    """

    detected: int
    begins: int
    points: float


@lru_cache(maxsize=4096)
def find_drift(baseline: tuple[RunSample, ...], since: tuple[RunSample, ...], error: float) -> Drift | None:
    """Return the first change since the baseline, or None.

    If nothing changed, the probability that it ever returns a change is at most `error`. For m series give each
    error/m: then the probability that any of them ever shows a change is at most `error`.
    """
    drop = _find_drop(baseline, since, error / 2)
    rise = _find_drop([run.mirrored for run in baseline], [run.mirrored for run in since], error / 2)
    found = [place for place in (drop, rise) if place is not None]
    if not found:
        return None
    detected, begins = min(found)
    after = since[begins : detected + 1]
    return Drift(detected, begins, 100 * (_compute_share(after) - _compute_share(baseline)))


def compute_lower_bound(passed: int, total: int, error: float) -> float:
    """Return the one-sided lower confidence bound of Clopper and Pearson; 0 without passes.

    It also holds for the mean of trials whose rates differ (Hoeffding 1956, Annals of Mathematical Statistics 27(3)).
    """
    return float(betaincinv(passed, total - passed + 1, error)) if passed else 0.0


def compute_imbalance(baseline: Iterable[RunSample], run: RunSample) -> float:
    """Return the largest difference of mean rates that unequal numbers of trials per scenario can make, as a share."""
    pinned: Counter[str] = Counter()
    for sample in baseline:
        pinned.update(dict(sample.answered))
    counts = Counter(dict(run.answered))
    if not run.total or not pinned.total():
        return 1.0
    return sum(abs(pinned[name] / pinned.total() - counts[name] / run.total) for name in pinned | counts) / 2


def _find_drop(baseline: Sequence[RunSample], since: Sequence[RunSample], error: float) -> tuple[int, int] | None:
    """Return the index of the run at which a drop was detected, and of the one at which it began."""
    pinned = sum(run.total for run in baseline)
    if not pinned or not since:
        return None
    bound = compute_lower_bound(sum(run.passed for run in baseline), pinned, error / 2)
    limits = np.clip([bound - compute_imbalance(baseline, run) for run in since], 0.0, 1.0)
    ratios = _list_log_ratios(since, limits)
    evidence = _accumulate_evidence(ratios)
    reached = np.flatnonzero(evidence >= -math.log(error / 2))
    if not reached.size:
        return None
    detected = int(reached[0])
    return detected, _find_likely_start(ratios[: detected + 1])


def _list_log_ratios(since: Sequence[RunSample], limits: Floats) -> Floats:
    """Return the log likelihood ratio of each run by the size of the drop."""
    passed = np.array([run.passed for run in since], float)[:, None]
    failed = np.array([run.total - run.passed for run in since], float)[:, None]
    found: Floats = xlogy(passed, _DROPS) + xlogy(failed, (1 - limits[:, None] * _DROPS) / (1 - limits[:, None]))
    return found


def _weigh_starts(count: int) -> Floats:
    """Return the log weight of each run as the start of a change: 1/(1·2), 1/(2·3), …, at most 1 in all."""
    places = np.arange(count)
    weights: Floats = -np.log((places + 1.0) * (places + 2.0)) - math.log(len(_DROPS))
    return weights


def _accumulate_evidence(ratios: Floats) -> Floats:
    """Return the logarithm of the evidence after each run, over all starts and sizes of a drop."""
    weights = _weigh_starts(len(ratios))
    found = np.empty(len(ratios))
    by_drop = np.full(len(_DROPS), -np.inf)
    for place, ratio in enumerate(ratios):
        by_drop = np.logaddexp(by_drop, weights[place]) + ratio
        found[place] = logsumexp(by_drop)
    return found


def _find_likely_start(ratios: Floats) -> int:
    """Return the run at which a change, as seen after the last run, most likely began."""
    after = np.cumsum(ratios[::-1], axis=0)[::-1]
    return int(np.argmax(logsumexp(after, axis=1) + _weigh_starts(len(ratios))))


def _compute_share(runs: Sequence[RunSample]) -> float:
    return sum(run.passed for run in runs) / max(1, sum(run.total for run in runs))
