"""Rates of two sides and the differences between them, by shared strata or by shared instances."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.differences import Difference, Stratum, compute_difference
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign
from toolbench.evals.statistics.pairs import compute_paired_difference
from toolbench.evals.statistics.sequential_differences import compute_sequential_difference
from toolbench.evals.statistics.shares import compute_exact_interval
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.results.compare.matching import ComparisonCounts, StratumKey
from toolbench.lab.results.compare.strata import RATIO_COLUMNS, StratumCounts, collect_cell_ids

MIN_PAIRS = 10  # a paired comparison needs at least so many shared instances


@dataclass(frozen=True, slots=True)
class OutcomeChanges:
    """Numbers of instances by the change of their outcome from the first side to the second.

    Only drawn instances count. An instance passes on a side if all its trials there that the metric of the comparison
    counts are successes.

    Attributes:
        regressed: instances that pass on the first side only.
        fixed: instances that pass on the second side only.
        still_failing: instances that pass on neither side.
        still_passing: instances that pass on both sides.
        new: instances that only the second side has.
        removed: instances that only the first side has.
        unsettled: instances on both sides for which the metric counts no trial on at least one side.
    """

    regressed: int = 0
    fixed: int = 0
    still_failing: int = 0
    still_passing: int = 0
    new: int = 0
    removed: int = 0
    unsettled: int = 0

    @property
    def shared(self) -> int:
        """Return the number of instances for which the metric counts trials on both sides."""
        return self.regressed + self.fixed + self.still_failing + self.still_passing


@dataclass(frozen=True, slots=True)
class RateComparison:
    """Rates of two sides and the difference between them.

    Attributes:
        difference: the second side less the first, as a fraction; None if it cannot be computed or is withheld.
        withheld: whether a deterministic endpoint repeats its answers, so that its trials are not independent.
        clustered: whether correlated trials reduce the effective sample size.
        is_lower_better: whether the side with the lower rate is the better one.
    """

    first: Rate
    second: Rate
    difference: Difference | None
    withheld: bool
    clustered: bool
    is_lower_better: bool = False

    @property
    def sequential(self) -> bool:
        """Return whether the difference is anytime-valid, because a side used sequential stopping."""
        return bool(self.first.error or self.second.error)

    @property
    def interval_names(self) -> str:
        """Return the names of the interval methods of both rates, or one name if they are equal."""
        return " and ".join(dict.fromkeys((self.first.interval_name, self.second.interval_name)))

    @property
    def p(self) -> float | None:
        """Return the p-value, corrected for the number of comparisons; None without a difference."""
        return self.difference.p if self.difference else None

    @property
    def differs(self) -> bool:
        """Return whether the difference is significant: its interval excludes 0."""
        return self.difference is not None and self.difference.is_significant

    def with_comparisons(self, comparisons: int) -> "RateComparison":
        """Return the comparison, corrected for the number of differences that are shown together."""
        return replace(self, difference=self.difference.with_comparisons(comparisons)) if self.difference else self

    @property
    def result_text(self) -> str:
        """Return the result in words. A difference that is not significant has no direction."""
        if self.withheld:
            return "answers repeat: withheld"
        if self.difference is None:
            return "not on both sides"
        return ("better" if self.improves else "worse") if self.differs else "no difference shown"

    @property
    def improvement(self) -> bool | None:
        """Return whether the second side is significantly better; None without a significant difference."""
        return self.improves if self.differs else None

    @property
    def improves(self) -> bool:
        """Return whether the observed difference, which must not be 0, favours the second side; False without one."""
        return self.difference is not None and (self.difference.value > 0) != self.is_lower_better


def count_successes(stratum: StratumCounts, metric: str) -> tuple[int, int]:
    """Return the number of successes and of counted trials.

    Args:
        stratum: the counts.
        metric: a key of SUCCESS_METRICS.
    """
    return {
        "given": (stratum.passed, stratum.answered),
        "delivered": (stratum.passed - stratum.retried_passes, stratum.tried),
        "first": (stratum.first_attempt_passes, stratum.answered),
    }[metric]


def compare_stratified(counts: ComparisonCounts, keys: Sequence[StratumKey]) -> RateComparison:
    """Compare all trials in these strata of both sides, at their effective sample size.

    With sequential stopping, the interval and the p-value are anytime-valid.
    """
    sides = (counts.first, counts.second)
    sums_by_side = [[_sum_clusters(side[key], counts.metric) for key in keys] for side in sides]
    stopping_by_side = [_combine_stopping(stratum for key in keys for stratum in side[key]) for side in sides]
    withheld = any(stratum.repeating for key in keys for side in sides for stratum in side[key])
    effective_by_side = [[sums.compute_effective_counts() for sums in side_sums] for side_sums in sums_by_side]
    if withheld:
        difference = None
    elif any(design.error for design in stopping_by_side):
        samples = (
            [ScenarioSample(k, n, _combine_stopping(side[key])) for (k, n), key in zip(effective, keys, strict=True)]
            for effective, side in zip(effective_by_side, sides, strict=True)
        )
        difference = compute_sequential_difference(tuple(zip(*samples, strict=True)))
    else:
        difference = compute_difference(
            [Stratum(*first, *second) for first, second in zip(*effective_by_side, strict=True)]
        )
    clustered = any(sums.design_effect > 1 for side_sums in sums_by_side for sums in side_sums)
    first_rate, second_rate = (
        _build_rate(reduce(add, side_sums, ClusterSums()), design, withheld=withheld, clustered=clustered)
        for side_sums, design in zip(sums_by_side, stopping_by_side, strict=True)
    )
    return RateComparison(first_rate, second_rate, difference, withheld, clustered)


def build_side_rate(strata: Sequence[StratumCounts], metric: str) -> Rate:
    """Return the rate of all these strata of one side together, at their effective sample size."""
    total = _sum_clusters(strata, metric)
    withheld = any(stratum.repeating for stratum in strata)
    return _build_rate(total, _combine_stopping(strata), withheld=withheld, clustered=total.design_effect > 1)


def choose_and_compare(counts: ComparisonCounts, *, how: str = "") -> tuple[RateComparison, str, OutcomeChanges]:
    """Compare the shared strata, by pairs of instances if `how` and `is_worth_pairing` allow it.

    Args:
        counts: counts of both sides.
        how: "stratified" prevents a paired comparison.

    Returns:
        The comparison, how it was made ("paired" or "stratified"), and the changes of the instances.
    """
    changes = count_outcome_changes(counts)
    chosen_how = "paired" if how != "stratified" and is_worth_pairing(counts, changes) else "stratified"
    return compare_strata(counts, counts.keys, chosen_how), chosen_how, changes


def compare_strata(counts: ComparisonCounts, keys: Sequence[StratumKey], how: str) -> RateComparison:
    """Compare these strata by pairs of instances if `how` is "paired", else stratum by stratum."""
    return compare_paired(counts, keys) if how == "paired" else compare_stratified(counts, keys)


def _combine_stopping(strata: Iterable[StratumCounts]) -> StoppingDesign:
    """Return the stopping design of all these strata together: their smallest error and their number of cells."""
    all_strata = tuple(strata)
    errors = [stratum.error for stratum in all_strata if stratum.error is not None]
    return StoppingDesign(min(errors, default=None), len(collect_cell_ids(all_strata)))


def _sum_clusters(strata: Iterable[StratumCounts], metric: str) -> ClusterSums:
    """Return the sums of a metric over clusters.

    The trials of a drawn instance are a cluster. For the published wording and test cases, each trial is a cluster. For
    metrics of RATIO_COLUMNS, the calls of each trial are a cluster.
    """
    total = ClusterSums()
    for stratum in strata:
        if metric in RATIO_COLUMNS:
            total += stratum.ratios[metric]
            continue
        k, n = count_successes(stratum, metric)
        is_cluster = stratum.instance is not None
        total += ClusterSums(1, k, n, k * k, k * n, n * n) if is_cluster else ClusterSums(n, k, n, k, k, n)
    return total


def _build_rate(counts: ClusterSums, stopping: StoppingDesign, *, withheld: bool, clustered: bool) -> Rate:
    """Return the rate of these counts.

    The interval for clustered trials is that of their effective sample size. It is exact if the number of trials was
    fixed, else anytime-valid.
    """
    k, n = int(counts.k), int(counts.n)
    if not (clustered and n):
        return build_rate(k, n, withheld=withheld, stopping=stopping)
    if stopping.error:
        return replace(build_rate(*counts.compute_effective_counts(), withheld=withheld, stopping=stopping), k=k, n=n)
    effective = n / counts.design_effect
    low, high = compute_exact_interval(min(k / n * effective, effective), effective)
    return Rate(k=k, n=n, low=low, high=high, withheld=withheld, method="exact")


def compare_paired(counts: ComparisonCounts, keys: Sequence[StratumKey]) -> RateComparison:
    """Compare the shares of successes of each instance for which the metric counts trials on both sides."""
    pairs = [pair for key in keys for pair in _list_pairs(counts, key) if pair[0][1] and pair[1][1]]
    difference = compute_paired_difference([(first[0] / first[1], second[0] / second[1]) for first, second in pairs])
    sums = [(sum(pair[side][0] for pair in pairs), sum(pair[side][1] for pair in pairs)) for side in (0, 1)]
    withheld = any(stratum.repeating for key in keys for stratum in (*counts.first[key], *counts.second[key]))
    first_rate, second_rate = (build_rate(k, n, withheld=withheld) for k, n in sums)
    return RateComparison(first_rate, second_rate, None if withheld else difference, withheld, clustered=False)


CountPair = tuple[tuple[int, int], tuple[int, int]]  # (successes, trials) of an instance on both sides


def _list_pairs(counts: ComparisonCounts, key: StratumKey) -> list[CountPair]:
    first, second = (
        _sum_by_instance(counts.first[key], counts.metric),
        _sum_by_instance(counts.second[key], counts.metric),
    )
    return [(first[instance], second[instance]) for instance in first if instance in second]


def _sum_by_instance(strata: Iterable[StratumCounts], metric: str) -> dict[int, tuple[int, int]]:
    """Return (successes, trials) of the drawn instances by seed, over all versions and settings in the strata."""
    sums: dict[int, tuple[int, int]] = {}
    for stratum in strata:
        if stratum.instance is not None:
            k, n = count_successes(stratum, metric)
            earlier_k, earlier_n = sums.get(stratum.instance, (0, 0))
            sums[stratum.instance] = (earlier_k + k, earlier_n + n)
    return sums


def count_outcome_changes(counts: ComparisonCounts) -> OutcomeChanges:
    """Count the drawn instances in the strata that both sides have, by the change of their outcome."""
    changes: Counter[str] = Counter()
    for key in counts.keys:
        first = _sum_by_instance(counts.first[key], counts.metric)
        second = _sum_by_instance(counts.second[key], counts.metric)
        changes["new"] += len(second.keys() - first.keys())
        changes["removed"] += len(first.keys() - second.keys())
        shared = first.keys() & second.keys()
        changes.update(classify_change(first[instance], second[instance]) for instance in shared)
    return OutcomeChanges(**changes)


def classify_change(first: tuple[int, int], second: tuple[int, int]) -> str:
    """Return the change of a shared instance as the name of a field of OutcomeChanges.

    Args:
        first: successes and trials on the first side.
        second: successes and trials on the second side.
    """
    if not (first[1] and second[1]):
        return "unsettled"
    passes_first, passes_second = first[0] == first[1], second[0] == second[1]
    if passes_first:
        return "still_passing" if passes_second else "regressed"
    return "fixed" if passes_second else "still_failing"


def find_instances_by_change(counts: ComparisonCounts, change: str, limit: int) -> list[tuple[StratumKey, int]]:
    """Return shared instances with a change.

    Args:
        counts: counts of both sides.
        change: a possible result of `classify_change`.
        limit: maximum number of instances.

    Returns:
        (stratum, seed of the instance) pairs.
    """
    found: list[tuple[StratumKey, int]] = []
    for key in counts.keys:
        first = _sum_by_instance(counts.first[key], counts.metric)
        second = _sum_by_instance(counts.second[key], counts.metric)
        pairs = {instance: (first[instance], second[instance]) for instance in first if instance in second}
        found += [(key, instance) for instance, pair in pairs.items() if classify_change(*pair) == change]
    return found[:limit]


def is_worth_pairing(counts: ComparisonCounts, changes: OutcomeChanges) -> bool:
    """Return whether a paired comparison is valid and has enough pairs.

    The metric must count trials on both sides for at least MIN_PAIRS instances, and for at least half of the instances
    of the side with fewer instances. Sequential stopping makes a paired comparison invalid, because the paired test is
    not anytime-valid.
    """
    if counts.sequential:
        return False
    instances_by_side = [changes.shared + changes.unsettled + unshared for unshared in (changes.removed, changes.new)]
    return changes.shared >= MIN_PAIRS and 2 * changes.shared >= min(instances_by_side)
