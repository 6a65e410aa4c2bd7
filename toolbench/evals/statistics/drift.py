"""Drift: a sequential test of whether the success of repeated runs differs from a baseline.

Half of the error is used for the baseline, whose rate is not known: the runs are tested against its confidence bound
(Clopper and Pearson 1934). The other half is used for the runs: the evidence against "at least this rate" is an
e-process, and the probability that it ever reaches 1/error is at most `error` (Ville's inequality; Ramdas, Grünwald,
Vovk and Shafer (2023), Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38(4)).
docs/trend.md has the derivation and a simulation.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, logsumexp, xlogy

from toolbench.evals.statistics.shares import Reals

# A drop multiplies the rate by one of these factors. The evidence is averaged over them, because the size of a drop is
# not known before.
_DROP_FACTORS = np.arange(0.05, 1.0, 0.1)


@dataclass(frozen=True, slots=True)
class RunSample:
    """The trials of one configuration in one run.

    Attributes:
        passed: The number of trials that passed.
        answered: (scenario with its version, number of trials with an answer) for each scenario.
    """

    passed: int
    answered: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Return the number of trials with an answer."""
        return sum(count for _, count in self.answered)

    @property
    def mirrored(self) -> "RunSample":
        """Return the sample with the failed trials counted as passed, and the passed ones as failed."""
        return RunSample(self.total - self.passed, self.answered)


@dataclass(frozen=True, slots=True)
class Drift:
    """A change that the test found.

    Attributes:
        detected_index: The index, among the runs since the baseline, of the run at which the evidence sufficed.
        start_index: The index, among the same runs, of the run at which the change most likely began.
        points: The success from `start_index` to `detected_index` minus that of the baseline, in percentage points.
    """

    detected_index: int
    start_index: int
    points: float


@lru_cache(maxsize=4096)
def find_drift(baseline: tuple[RunSample, ...], since: tuple[RunSample, ...], error: float) -> Drift | None:
    """Return the first change since the baseline; None if there is none.

    If the rate never changes, the probability that any call in a growing series returns a change is at most `error`. To
    limit the probability for m series together to e, use the error e/m for each.

    Args:
        baseline: The runs of the baseline.
        since: The runs after them, the oldest first.
        error: The largest probability of returning a change although the rate never changed, as a fraction.
    """
    drop = _find_drop(baseline, since, error / 2)
    rise = _find_drop([run.mirrored for run in baseline], [run.mirrored for run in since], error / 2)
    changes = [change for change in (drop, rise) if change is not None]
    if not changes:
        return None
    detected_index, start_index = min(changes)
    after = since[start_index : detected_index + 1]
    return Drift(detected_index, start_index, 100 * (_compute_share(after) - _compute_share(baseline)))


def compute_lower_bound(passed: int, total: int, error: float) -> float:
    """Return the one-sided lower confidence bound of Clopper and Pearson, as a fraction; 0 without passes.

    The bound also holds for the mean rate of trials with different rates (Hoeffding 1956, Annals of Mathematical
    Statistics 27(3)).
    """
    return float(betaincinv(passed, total - passed + 1, error)) if passed else 0.0


def compute_imbalance(baseline: Iterable[RunSample], run: RunSample) -> float:
    """Return the largest difference of mean rates that unequal shares of the scenarios can cause.

    The difference is a fraction, and 1 if the baseline or the run has no trials with an answer.
    """
    baseline_counts: Counter[str] = Counter()
    for sample in baseline:
        baseline_counts.update(dict(sample.answered))
    counts = Counter(dict(run.answered))
    total = baseline_counts.total()
    if not run.total or not total:
        return 1.0
    names = baseline_counts | counts
    return sum(abs(baseline_counts[name] / total - counts[name] / run.total) for name in names) / 2


def _find_drop(baseline: Sequence[RunSample], since: Sequence[RunSample], error: float) -> tuple[int, int] | None:
    """Return the indices in `since` of the run at which a drop was detected and of the run at which it began.

    Returns:
        (detected_index, start_index); None if no drop was detected.
    """
    baseline_total = sum(run.total for run in baseline)
    if not baseline_total or not since:
        return None
    bound = compute_lower_bound(sum(run.passed for run in baseline), baseline_total, error / 2)
    lowest_rates = np.clip([bound - compute_imbalance(baseline, run) for run in since], 0.0, 1.0)
    ratios = _list_log_ratios(since, lowest_rates)
    evidence = _accumulate_evidence(ratios)
    reached = np.flatnonzero(evidence >= -math.log(error / 2))
    if not reached.size:
        return None
    detected_index = int(reached[0])
    return detected_index, _find_likely_start(ratios[: detected_index + 1])


def _list_log_ratios(since: Sequence[RunSample], lowest_rates: Reals) -> Reals:
    """Return the logarithms of the likelihood ratios, a row for each run and a column for each drop factor.

    Args:
        since: The runs.
        lowest_rates: The lowest rate of each run without a drop; a drop multiplies it by a factor.
    """
    passed = np.array([run.passed for run in since], float)[:, None]
    failed = np.array([run.total - run.passed for run in since], float)[:, None]
    rates = lowest_rates[:, None]
    ratios: Reals = xlogy(passed, _DROP_FACTORS) + xlogy(failed, (1 - rates * _DROP_FACTORS) / (1 - rates))
    return ratios


def _compute_log_start_weights(count: int) -> Reals:
    """Return the logarithm of the weight of each run as the start of a drop by one factor.

    The weights are 1/(1·2), 1/(2·3) and so on, divided by the number of drop factors.
    """
    indices = np.arange(count)
    log_weights: Reals = -np.log((indices + 1.0) * (indices + 2.0)) - math.log(len(_DROP_FACTORS))
    return log_weights


def _accumulate_evidence(ratios: Reals) -> Reals:
    """Return the logarithm of the evidence after each run, summed over all starts and factors of a drop."""
    log_weights = _compute_log_start_weights(len(ratios))
    evidence = np.empty(len(ratios))
    by_factor = np.full(len(_DROP_FACTORS), -np.inf)
    for index, run_ratios in enumerate(ratios):
        by_factor = np.logaddexp(by_factor, log_weights[index]) + run_ratios
        evidence[index] = logsumexp(by_factor)
    return evidence


def _find_likely_start(ratios: Reals) -> int:
    """Return the index of the run at which a drop most likely began, judged after the last run."""
    after = np.cumsum(ratios[::-1], axis=0)[::-1]
    return int(np.argmax(logsumexp(after, axis=1) + _compute_log_start_weights(len(ratios))))


def _compute_share(runs: Sequence[RunSample]) -> float:
    return sum(run.passed for run in runs) / max(1, sum(run.total for run in runs))
