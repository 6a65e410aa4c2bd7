"""Metrics compared beside success: how calls were made, how long trials took and what they cost.

The comparison of the whole answers the question of the page and is a family of its own. All differences here form one
more family: each interval is simultaneous at 1 − 5 % / (number of differences).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.evals.decisions.choice import compute_cost_difference
from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.quantile_differences import QuantileDifference, compute_quantile_difference
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.values import Metric
from toolbench.lab.models import Trial
from toolbench.lab.results.compare.matching import ComparisonCounts, Strata, StratumKey
from toolbench.lab.results.compare.sides import Side
from toolbench.lab.results.compare.statistics import RateComparison, compare_stratified
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, VIOLATION_METRICS, StratumCounts, read_ratios

HIGHER_IS_BETTER = ("structured", "schema", "arguments")  # the more the better
QUANTILES = (("p50", 0.5), ("p95", 0.95))


@dataclass(frozen=True, slots=True)
class CallRate:
    """Comparison of a metric of calls."""

    metric: Metric
    compared: RateComparison


@dataclass(frozen=True, slots=True)
class TimeDifference:
    """Difference of a quantile of trial durations.

    Attributes:
        name: "p50" or "p95".
        shift: None where a side has no answer.
    """

    name: str
    shift: QuantileDifference | None


@dataclass(frozen=True, slots=True)
class SecondaryMetrics:
    """Everything that is compared beside success.

    Attributes:
        times: empty where a side has a local model, which shares this machine, or where the sides share no stratum.
        cost: dollars per end-to-end success, the second side less the first; None where a cost is not known.
        comparisons: number of differences, without the comparison of the whole; at least 1.
    """

    calls: tuple[CallRate, ...]
    times: tuple[TimeDifference, ...]
    cost: IntervalEstimate | None
    comparisons: int


def get_secondary_metrics(
    counts: ComparisonCounts, sides: tuple[Side, Side], trials: Sequence[QuerySet[Trial]]
) -> SecondaryMetrics:
    """Return the secondary metrics, with one query. Calls of one trial are correlated, so each trial is a cluster."""
    counts = _add_ratios(counts, trials)
    good = [compare_stratified(replace(counts, metric=name), counts.keys) for name in HIGHER_IS_BETTER]
    bad = [
        replace(compare_stratified(replace(counts, metric=name), counts.keys), is_lower_better=True)
        for name in VIOLATION_METRICS
    ]
    timed = bool(counts.keys) and not any(side.local for side in sides)
    before, after = (_list_durations_ms(side, counts.keys) if timed else [] for side in (counts.first, counts.second))
    first, second = (side.cost for side in sides)
    priced = first is not None and second is not None
    tested = sum(rate.difference is not None for rate in (*good, *bad))
    comparisons = max(1, tested + len(QUANTILES) * bool(before and after) + priced)
    named = zip((*HIGHER_IS_BETTER, *VIOLATION_METRICS), (*good, *bad), strict=True)
    return SecondaryMetrics(
        calls=tuple(CallRate(METRICS[name], rate.with_comparisons(comparisons)) for name, rate in named),
        times=tuple(
            TimeDifference(name, compute_quantile_difference(before, after, q, comparisons=comparisons))
            for name, q in QUANTILES
            if timed
        ),
        cost=compute_cost_difference(first, second, comparisons=comparisons) if first and second else None,
        comparisons=comparisons,
    )


def apply_bonferroni(found: Sequence[RateComparison]) -> list[RateComparison]:
    """Return the comparisons, each corrected for the number of those that have a difference."""
    comparisons = sum(comparison.difference is not None for comparison in found)
    return [comparison.with_comparisons(comparisons) for comparison in found]


def _list_durations_ms(side: Strata, keys: Sequence[StratumKey]) -> list[float]:
    """Return the durations of the answered trials of these strata in milliseconds, without the time in the queue."""
    return [duration for key in keys for line in side[key] for duration in line.durations]


def _add_ratios(counts: ComparisonCounts, trials: Sequence[QuerySet[Trial]]) -> ComparisonCounts:
    """Return only the shared strata, each as one line with the sums of its calls and answers."""
    if not counts.keys:
        return counts
    names = tuple(name for name in STRATUM_FIELDS if name not in counts.differing)
    first, second = (
        {key: (_join_lines(side[key], ratios[key]),) for key in counts.keys}
        for side, ratios in zip((counts.first, counts.second), read_ratios(trials, names), strict=True)
    )
    return replace(counts, first=first, second=second)


def _join_lines(lines: Sequence[StratumCounts], ratios: Mapping[str, ClusterSums]) -> StratumCounts:
    return replace(
        lines[0],
        instance=None,
        repeating=any(line.repeating for line in lines),
        cells=frozenset[int]().union(*(line.cells for line in lines)),
        error=min((line.error for line in lines if line.error is not None), default=None),
        durations=tuple(duration for line in lines for duration in line.durations),
        ratios=ratios,
    )
