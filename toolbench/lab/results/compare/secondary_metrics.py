"""Secondary metrics of a comparison: calls, durations and cost.

Their differences are one family: each interval has the level 1 − 5 % / (number of differences). The difference of
success is not in this family, because it alone answers the question of the page.
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
from toolbench.lab.results.compare.matching import ComparisonCounts, StrataByKey, StratumKey
from toolbench.lab.results.compare.sides import Side
from toolbench.lab.results.compare.statistics import RateComparison, compare_stratified
from toolbench.lab.results.compare.strata import (
    STRATUM_FIELDS,
    VIOLATION_METRICS,
    StratumCounts,
    collect_cell_ids,
    read_ratios,
)

HIGHER_IS_BETTER = ("structured", "schema", "arguments")  # metrics of calls; for VIOLATION_METRICS, lower is better
QUANTILES = (("p50", 0.5), ("p95", 0.95))


@dataclass(frozen=True, slots=True)
class CallMetricComparison:
    """Comparison of a metric of calls."""

    metric: Metric
    compared: RateComparison


@dataclass(frozen=True, slots=True)
class TimeDifference:
    """Difference of a quantile of trial durations.

    Attributes:
        name: "p50" or "p95".
        difference: milliseconds of the second side less those of the first; None if a side has no answered trial.
    """

    name: str
    difference: QuantileDifference | None


@dataclass(frozen=True, slots=True)
class SecondaryMetrics:
    """Secondary metrics of two sides.

    Attributes:
        calls: metrics of calls, those for which higher is better first.
        times: empty if a side has a local model, which shares this machine, or if the sides share no stratum.
        cost: dollars per end-to-end success, the second side less the first; None if a cost is unknown.
        comparisons: number of differences in the family; at least 1.
    """

    calls: tuple[CallMetricComparison, ...]
    times: tuple[TimeDifference, ...]
    cost: IntervalEstimate | None
    comparisons: int


def get_secondary_metrics(
    counts: ComparisonCounts, sides: tuple[Side, Side], trials: Sequence[QuerySet[Trial]]
) -> SecondaryMetrics:
    """Return the secondary metrics, with one SQL query, or with none if the sides share no stratum.

    Args:
        counts: counts of both sides.
        sides: figures of both sides.
        trials: the compared trials of both sides.
    """
    counts = _read_call_counts(counts, trials)
    compared_by_name = {
        name: replace(compare_stratified(replace(counts, metric=name), counts.keys), is_lower_better=is_lower_better)
        for names, is_lower_better in ((HIGHER_IS_BETTER, False), (VIOLATION_METRICS, True))
        for name in names
    }
    is_timed = bool(counts.keys) and not any(side.local for side in sides)
    first_durations_ms, second_durations_ms = (
        _list_durations_ms(side, counts.keys) if is_timed else [] for side in (counts.first, counts.second)
    )
    first_cost, second_cost = (side.cost for side in sides)
    comparisons = sum(compared.difference is not None for compared in compared_by_name.values())
    comparisons += len(QUANTILES) * bool(first_durations_ms and second_durations_ms)
    comparisons += bool(first_cost and second_cost)
    comparisons = max(1, comparisons)
    return SecondaryMetrics(
        calls=tuple(
            CallMetricComparison(METRICS[name], compared.with_comparisons(comparisons))
            for name, compared in compared_by_name.items()
        ),
        times=tuple(
            TimeDifference(
                name, compute_quantile_difference(first_durations_ms, second_durations_ms, q, comparisons=comparisons)
            )
            for name, q in QUANTILES
            if is_timed
        ),
        cost=compute_cost_difference(first_cost, second_cost, comparisons=comparisons)
        if first_cost and second_cost
        else None,
        comparisons=comparisons,
    )


def apply_bonferroni(comparisons: Sequence[RateComparison]) -> list[RateComparison]:
    """Return the comparisons, each corrected for the number of those that have a difference."""
    differences = sum(comparison.difference is not None for comparison in comparisons)
    return [comparison.with_comparisons(differences) for comparison in comparisons]


def _list_durations_ms(side: StrataByKey, keys: Sequence[StratumKey]) -> list[float]:
    """Return the milliseconds of the answered trials of these strata, without the time in the queue."""
    return [duration for key in keys for stratum in side[key] for duration in stratum.durations]


def _read_call_counts(counts: ComparisonCounts, trials: Sequence[QuerySet[Trial]]) -> ComparisonCounts:
    """Return the counts with only the shared strata, each as one StratumCounts with the sums over its calls.

    The function sends one SQL query. Without a shared stratum, it returns `counts` and sends none.
    """
    if not counts.keys:
        return counts
    names = tuple(name for name in STRATUM_FIELDS if name not in counts.differing)
    first, second = (
        {key: (_join_instances(side[key], ratios[key]),) for key in counts.keys}
        for side, ratios in zip((counts.first, counts.second), read_ratios(trials, names), strict=True)
    )
    return replace(counts, first=first, second=second)


def _join_instances(strata: Sequence[StratumCounts], ratios: Mapping[str, ClusterSums]) -> StratumCounts:
    """Return the counts of all instances of a stratum as one, with these sums over calls.

    Only the fields that comparisons of secondary metrics read are joined; the others are those of the first instance.
    """
    return replace(
        strata[0],
        instance=None,
        repeating=any(stratum.repeating for stratum in strata),
        cell_ids=collect_cell_ids(strata),
        error=min((stratum.error for stratum in strata if stratum.error is not None), default=None),
        durations=tuple(duration for stratum in strata for duration in stratum.durations),
        ratios=ratios,
    )
