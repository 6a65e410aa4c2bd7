"""Statistics of two sides: shared strata, shared instances and the differences between the sides."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from toolbench.lab.metrics.scenario_groups import DEFAULT_GROUP
from toolbench.lab.results.compare.sides import RATIO_COLUMNS, STRATUM_FIELDS, StratumCounts

MIN_PAIRS = 10
StratumKey = tuple[object, ...]
Strata = Mapping[StratumKey, tuple[StratumCounts, ...]]


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


@dataclass(frozen=True, slots=True)
class ComparisonCounts:
    """Counts of both sides by stratum and instance.

    Attributes:
        groups: scenario groups that both sides have, the most frequent first.
        kinds: instance kinds that both sides have, the most frequent first.
        differing: names of STRATUM_FIELDS in which the sides have no value in common: what is compared.
        left_out: number of strata that only one side has, without those of `left_out_versions`.
        left_out_versions: scenario versions that are not compared because the other side has other versions of the
            scenario, each with the name of its side.
    """

    metric: str
    group: str
    kind: str
    groups: tuple[str, ...]
    kinds: tuple[str, ...]
    differing: tuple[str, ...]
    first: Strata
    second: Strata
    left_out: int
    left_out_versions: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[StratumKey, ...]:
        """Return the strata that both sides have."""
        return tuple(key for key in self.first if key in self.second)

    @property
    def sequential(self) -> bool:
        """Return whether any cell used sequential stopping."""
        return any(line.error for side in (self.first, self.second) for lines in side.values() for line in lines)


def match_sides(
    first: Sequence[StratumCounts], second: Sequence[StratumCounts], *, metric: str, group: str = "", kind: str = ""
) -> ComparisonCounts:
    """Group the lines of both sides into the strata that they can be compared in.

    Groups of scenarios are never pooled, nor are generated instances with the published wording. Nor are versions of a
    scenario: where the sides share a version, versions are separate strata; where they share none, each side counts its
    newest.

    Args:
        first: counts of the first side.
        second: counts of the second side.
        metric: name of the success metric.
        group: the scenario group; if it is not on both sides, the default or most frequent one is taken.
        kind: the instance kind; if it is not on both sides, the most frequent one is taken.
    """
    groups = _list_common((line.group for line in first), (line.group for line in second))
    group = group if group in groups else DEFAULT_GROUP if DEFAULT_GROUP in groups else next(iter(groups), "")
    first, second = ([line for line in side if line.group == group] for side in (first, second))
    kinds = _list_common((line.kind for line in first), (line.kind for line in second))
    kind = kind if kind in kinds else next(iter(kinds), "")
    first, second = ([line for line in side if line.kind == kind] for side in (first, second))
    differing = tuple(name for name in STRATUM_FIELDS if _differ(first, second, name))
    shared = tuple(name for name in STRATUM_FIELDS if name not in differing)
    by_first, by_second = _group_by_stratum(first, shared), _group_by_stratum(second, shared)
    if "version" in differing:
        by_first, by_second = _newest_only(by_first, by_second), _newest_only(by_second, by_first)
    uncompared = (_uncompared(first, second, by_first, by_second), _uncompared(second, first, by_second, by_first))
    alone = (_alone(by_first, by_second, uncompared[0]), _alone(by_second, by_first, uncompared[1]))
    named = tuple(
        f"{scenario} version {version} ({side} side)"
        for side, versions in zip(("first", "second"), uncompared, strict=True)
        for scenario, version in sorted(versions)
    )
    return ComparisonCounts(metric, group, kind, groups, kinds, differing, by_first, by_second, sum(alone), named)


def _list_common(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Return the values that both have, the most frequent first."""
    counts, other_counts = Counter(first), set(second)
    return tuple(name for name, _ in counts.most_common() if name in other_counts)


def _differ(first: Sequence[StratumCounts], second: Sequence[StratumCounts], name: str) -> bool:
    """Return whether the sides have no value in common; for versions, in none of the scenarios that both have."""
    if name != "version":
        return {line.settings[name] for line in first}.isdisjoint(line.settings[name] for line in second)
    both = {line.scenario for line in first} & {line.scenario for line in second}
    return bool(both) and _versions(first).isdisjoint(_versions(second))


def _versions(lines: Iterable[StratumCounts]) -> set[tuple[str, int]]:
    return {(line.scenario, line.settings["version"]) for line in lines}


def _group_by_stratum(lines: Iterable[StratumCounts], shared: Sequence[str]) -> Strata:
    found: dict[StratumKey, list[StratumCounts]] = defaultdict(list)
    for line in lines:
        found[line.scenario, *(line.settings[name] for name in shared)].append(line)
    return {key: tuple(lines) for key, lines in found.items()}


def _newest_only(side: Strata, other_side: Strata) -> Strata:
    """Return the side with only the newest version of each scenario that has strata on both sides."""
    newest: dict[str, int] = {}
    for scenario, version in _versions(line for key in side if key in other_side for line in side[key]):
        newest[scenario] = max(version, newest.get(scenario, version))
    kept = {
        key: tuple(
            line for line in lines if line.settings["version"] == newest.get(line.scenario, line.settings["version"])
        )
        for key, lines in side.items()
    }
    return {key: lines for key, lines in kept.items() if lines}


def _uncompared(
    lines: Sequence[StratumCounts], other_counts: Sequence[StratumCounts], side: Strata, other_side: Strata
) -> set[tuple[str, int]]:
    """Return the versions without a shared stratum, of scenarios that the other side has only in other versions."""
    compared, other_versions = (
        _versions(line for key in side if key in other_side for line in side[key]),
        _versions(other_counts),
    )
    met = {scenario for scenario, _ in other_versions}
    return {version for version in _versions(lines) - compared - other_versions if version[0] in met}


def _alone(side: Strata, other_side: Strata, named: set[tuple[str, int]]) -> int:
    """Return how many strata only this side has, without those whose versions are all in `named`."""
    return sum(key not in other_side and not _versions(lines) <= named for key, lines in side.items())


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
