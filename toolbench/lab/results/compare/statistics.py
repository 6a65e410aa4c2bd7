"""Statistics of two sides: shared strata, shared instances and the differences between the sides."""

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
from toolbench.lab.results.compare.strata import RATIO_COLUMNS, StratumCounts

MIN_PAIRS = 10


@dataclass(frozen=True, slots=True)
class OutcomeChanges:
    """Numbers of instances by change from the first side to the second.

    An instance passes on a side when all its trials there pass.

    Attributes:
        new: instances that only the second side has.
        removed: instances that only the first side has.
        unsettled: instances without an answer on at least one side.
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
        """Return the number of instances with an answer on both sides."""
        return self.regressed + self.fixed + self.still_failing + self.still_passing


@dataclass(frozen=True, slots=True)
class RateComparison:
    """Rates of two sides and the difference between them.

    Attributes:
        difference: the second side less the first; None if it cannot be computed or is withheld.
        withheld: True where a deterministic endpoint repeats its answers, so its trials are not independent.
        clustered: True where correlated trials reduce the effective sample size.
    """

    first: Rate
    second: Rate
    difference: Difference | None
    withheld: bool
    clustered: bool
    is_lower_better: bool = False

    @property
    def sequential(self) -> bool:
        """Return whether the difference holds at every interim analysis."""
        return bool(self.first.error or self.second.error)

    @property
    def p(self) -> float | None:
        """Return the p-value that belongs to the interval, corrected where it is one of many."""
        return self.difference.p if self.difference else None

    @property
    def differs(self) -> bool:
        """Return whether the interval of the difference excludes 0."""
        return self.difference is not None and self.difference.is_significant

    def with_comparisons(self, comparisons: int) -> "RateComparison":
        """Return the comparison corrected as one of `comparisons` differences that are shown together."""
        return replace(self, difference=self.difference.with_comparisons(comparisons)) if self.difference else self

    @property
    def result_text(self) -> str:
        """Return the result in words."""
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
        """Return whether the second side has the better figure, significant or not."""
        return self.difference is not None and (self.difference.value > 0) != self.is_lower_better


def count_successes(line: StratumCounts, metric: str) -> tuple[int, int]:
    """Return the successes and the trials of a line by the success metric."""
    return {
        "given": (line.passed, line.answered),
        "delivered": (line.passed - line.late, line.tried),
        "first": (line.first, line.answered),
    }[metric]


def compare_stratified(counts: ComparisonCounts, keys: Sequence[StratumKey]) -> RateComparison:
    """Compare all lines of these strata at their effective sample size.

    With sequential stopping, the interval and the p-value hold at every interim analysis.
    """
    both = (counts.first, counts.second)
    sides = [[_sum_clusters(side[key], counts.metric) for key in keys] for side in both]
    whole = [_combine_stopping(line for key in keys for line in side[key]) for side in both]
    withheld = any(line.repeating for key in keys for side in both for line in side[key])
    effective = [[count.compute_effective_counts() for count in side] for side in sides]
    if withheld:
        found = None
    elif any(line.error for line in whole):
        parts = [[ScenarioSample(*e, _combine_stopping(side[k])) for e, k in zip(es, keys, strict=True)]
                 for es, side in zip(effective, both, strict=True)]  # fmt: skip
        found = compute_sequential_difference(tuple(zip(*parts, strict=True)))
    else:
        found = compute_difference([Stratum(*first, *two) for first, two in zip(*effective, strict=True)])
    clustered = any(count.design_effect > 1 for side in sides for count in side)
    first, second = (
        _build_rate(reduce(add, side, ClusterSums()), stopping, withheld=withheld, clustered=clustered)
        for side, stopping in zip(sides, whole, strict=True)
    )
    return RateComparison(first, second, found, withheld, clustered)


def build_side_rate(lines: Sequence[StratumCounts], metric: str) -> Rate:
    """Return the rate of all these lines of one side, at their effective sample size."""
    total = _sum_clusters(lines, metric)
    withheld = any(line.repeating for line in lines)
    return _build_rate(total, _combine_stopping(lines), withheld=withheld, clustered=total.design_effect > 1)


def choose_and_compare(counts: ComparisonCounts, *, how: str = "") -> tuple[RateComparison, str, OutcomeChanges]:
    """Compare all shared strata, by pairs where that is valid and worth it and `how` does not prevent it.

    Returns:
        The comparison, "paired" or "stratified", and the changes of the shared instances.
    """
    changes = count_outcome_changes(counts)
    chosen = "paired" if how != "stratified" and is_worth_pairing(counts, changes) else "stratified"
    return compare_strata(counts, counts.keys, chosen), chosen, changes


def compare_strata(counts: ComparisonCounts, keys: Sequence[StratumKey], how: str) -> RateComparison:
    """Compare these strata, "paired" or "stratified"."""
    return compare_paired(counts, keys) if how == "paired" else compare_stratified(counts, keys)


def _combine_stopping(lines: Iterable[StratumCounts]) -> StoppingDesign:
    """Return the stopping design of all these lines."""
    error_lines = tuple(lines)
    errors = [line.error for line in error_lines if line.error is not None]
    return StoppingDesign(min(errors, default=None), len(frozenset[int]().union(*(line.cells for line in error_lines))))


def _sum_clusters(lines: Iterable[StratumCounts], metric: str) -> ClusterSums:
    """Return the sums over clusters.

    A generated instance is a cluster. For the published wording, and for metrics of calls and answers, each trial is
    one.
    """
    total = ClusterSums()
    for line in lines:
        if metric in RATIO_COLUMNS:
            total += line.ratios[metric]
            continue
        k, n = count_successes(line, metric)
        drawn = (
            ClusterSums(1, k, n, k * k, k * n, n * n) if line.instance is not None else ClusterSums(n, k, n, k, k, n)
        )
        total += drawn
    return total


def _build_rate(counts: ClusterSums, stopping: StoppingDesign, *, withheld: bool, clustered: bool) -> Rate:
    """Return the rate at the effective sample size of clustered trials.

    Its interval is the exact one if the number of trials was fixed.
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
    """Compare only the shared instances with an answer on both sides."""
    pairs = [pair for key in keys for pair in _list_pairs(counts, key) if pair[0][1] and pair[1][1]]
    found = compute_paired_difference([(first[0] / first[1], second[0] / second[1]) for first, second in pairs])
    sums = [(sum(pair[side][0] for pair in pairs), sum(pair[side][1] for pair in pairs)) for side in (0, 1)]
    withheld = any(line.repeating for key in keys for line in (*counts.first[key], *counts.second[key]))
    found = None if withheld else found
    rates = [build_rate(k, n, withheld=withheld) for k, n in sums]
    return RateComparison(rates[0], rates[1], found, withheld, clustered=False)


CountPair = tuple[tuple[int, int], tuple[int, int]]


def _list_pairs(counts: ComparisonCounts, key: StratumKey) -> list[CountPair]:
    first, second = (
        _sum_by_instance(counts.first[key], counts.metric),
        _sum_by_instance(counts.second[key], counts.metric),
    )
    return [(first[instance], second[instance]) for instance in first if instance in second]


def _sum_by_instance(lines: Iterable[StratumCounts], metric: str) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for line in lines:
        if line.instance is not None:
            k, n = count_successes(line, metric)
            before = found.get(line.instance, (0, 0))
            found[line.instance] = (before[0] + k, before[1] + n)
    return found


def count_outcome_changes(counts: ComparisonCounts) -> OutcomeChanges:
    """Count the changes of the instances in all strata that both sides have."""
    found: Counter[str] = Counter()
    for key in counts.keys:
        first = _sum_by_instance(counts.first[key], counts.metric)
        second = _sum_by_instance(counts.second[key], counts.metric)
        found["new"] += len(second.keys() - first.keys())
        found["removed"] += len(first.keys() - second.keys())
        found.update(classify_change(first[key], second[key]) for key in first.keys() & second.keys())
    return OutcomeChanges(**found)


def classify_change(first: tuple[int, int], second: tuple[int, int]) -> str:
    """Return the change of an instance as the name of a field of OutcomeChanges.

    Args:
        first: successes and trials on the first side.
        second: successes and trials on the second side.
    """
    if not (first[1] and second[1]):
        return "unsettled"
    before, after = first[0] == first[1], second[0] == second[1]
    if before:
        return "still_passing" if after else "regressed"
    return "fixed" if after else "still_failing"


def find_instances_by_change(counts: ComparisonCounts, change: str, limit: int) -> list[tuple[StratumKey, int]]:
    """Return at most `limit` instances with the change `change`, each with its stratum."""
    return [
        (key, instance)
        for key in counts.keys
        for second in [_sum_by_instance(counts.second[key], counts.metric)]
        for instance, before in _sum_by_instance(counts.first[key], counts.metric).items()
        if instance in second and classify_change(before, second[instance]) == change
    ][:limit]


def is_worth_pairing(counts: ComparisonCounts, found: OutcomeChanges) -> bool:
    """Return whether a paired comparison is valid and has enough pairs.

    At least MIN_PAIRS instances, and half of those of the smaller side, must be shared. Both sides need a fixed number
    of trials, because paired tests do not hold at every interim analysis.
    """
    if counts.sequential:
        return False
    met = [found.shared + found.unsettled + more for more in (found.removed, found.new)]
    return found.shared >= MIN_PAIRS and 2 * found.shared >= min(met)
