"""Matching of the strata of two sides. Scenario groups, instance kinds and scenario versions are never pooled."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.metrics.scenario_groups import DEFAULT_GROUP
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, StratumCounts

StratumKey = tuple[object, ...]  # scenario, then the values of the STRATUM_FIELDS not in `ComparisonCounts.differing`
StrataByKey = Mapping[StratumKey, tuple[StratumCounts, ...]]


@dataclass(frozen=True, slots=True)
class ComparisonCounts:
    """Counts of both sides by stratum and instance.

    Attributes:
        metric: the metric that is compared: a key of SUCCESS_METRICS or RATIO_COLUMNS.
        group: the scenario group that is compared.
        kind: the instance kind that is compared.
        groups: scenario groups that both sides have, the one with the most counts on the first side first.
        kinds: instance kinds that both sides have in `group`, in the same order.
        differing: names of STRATUM_FIELDS in which the sides have no value in common; these fields do not divide
            strata.
        first: the counts of the first side by stratum.
        second: the counts of the second side by stratum.
        left_out: number of strata that only one side has, without those of `left_out_versions`.
        left_out_versions: scenario versions that are not compared because the other side has other versions of the
            scenario, such as "weather version 2 (first side)".
    """

    metric: str
    group: str
    kind: str
    groups: tuple[str, ...]
    kinds: tuple[str, ...]
    differing: tuple[str, ...]
    first: StrataByKey
    second: StrataByKey
    left_out: int
    left_out_versions: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[StratumKey, ...]:
        """Return the strata that both sides have."""
        return tuple(key for key in self.first if key in self.second)

    @property
    def sequential(self) -> bool:
        """Return whether any cell used sequential stopping."""
        sides = (self.first, self.second)
        return any(stratum.error for side in sides for strata in side.values() for stratum in strata)


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The scenario group and the instance kind that are compared; others are never pooled with them.

    Attributes:
        groups: groups to choose from, the one with the most counts of the baseline first.
        kinds: instance kinds to choose from, in the same order.
    """

    group: str
    groups: tuple[str, ...]
    kind: str
    kinds: tuple[str, ...]

    def select(self, strata: Iterable[StratumCounts]) -> list[StratumCounts]:
        """Return the strata of the chosen group and instance kind."""
        return [stratum for stratum in strata if stratum.group == self.group and stratum.kind == self.kind]


def choose_pool(
    first: Sequence[StratumCounts], others: Sequence[StratumCounts], group: str = "", kind: str = ""
) -> PoolChoice:
    """Choose a scenario group and an instance kind that the baseline and at least one other side have.

    Args:
        first: counts of the baseline.
        others: counts of all other sides together.
        group: group to choose if possible; otherwise the default group is chosen, or else the first possible group.
        kind: instance kind to choose if possible; otherwise the first possible one is chosen.

    Returns:
        The choice; its group or kind is "" if none is possible.
    """
    groups = _list_common((stratum.group for stratum in first), (stratum.group for stratum in others))
    if group not in groups:
        group = DEFAULT_GROUP if DEFAULT_GROUP in groups else next(iter(groups), "")
    kinds_by_side = ((stratum.kind for stratum in side if stratum.group == group) for side in (first, others))
    kinds = _list_common(*kinds_by_side)
    return PoolChoice(group, groups, kind if kind in kinds else next(iter(kinds), ""), kinds)


def match_sides(
    first: Sequence[StratumCounts], second: Sequence[StratumCounts], *, metric: str, group: str = "", kind: str = ""
) -> ComparisonCounts:
    """Group the counts of both sides by the strata in which they can be compared.

    Only one scenario group and one instance kind are compared. If the sides have a version of any scenario in common,
    versions are separate strata; otherwise, each side counts only the newest version of each shared scenario.

    Args:
        first: counts of the first side.
        second: counts of the second side.
        metric: a key of SUCCESS_METRICS.
        group: the scenario group, chosen as in `choose_pool`.
        kind: the instance kind, chosen as in `choose_pool`.
    """
    choice = choose_pool(first, second, group, kind)
    first, second = (choice.select(side) for side in (first, second))
    differing = tuple(name for name in STRATUM_FIELDS if _has_no_common_value(first, second, name))
    shared_names = tuple(name for name in STRATUM_FIELDS if name not in differing)
    first_by_key, second_by_key = _group_by_stratum(first, shared_names), _group_by_stratum(second, shared_names)
    if "version" in differing:
        first_by_key, second_by_key = (
            _keep_newest_versions(first_by_key, second_by_key),
            _keep_newest_versions(second_by_key, first_by_key),
        )
    uncompared_by_side = (
        _find_uncompared_versions(first, second, first_by_key, second_by_key),
        _find_uncompared_versions(second, first, second_by_key, first_by_key),
    )
    unmatched_counts = (
        _count_unmatched(first_by_key, second_by_key, uncompared_by_side[0]),
        _count_unmatched(second_by_key, first_by_key, uncompared_by_side[1]),
    )
    uncompared_names = tuple(
        f"{scenario} version {version} ({side} side)"
        for side, versions in zip(("first", "second"), uncompared_by_side, strict=True)
        for scenario, version in sorted(versions)
    )
    return ComparisonCounts(
        metric,
        choice.group,
        choice.kind,
        choice.groups,
        choice.kinds,
        differing,
        first_by_key,
        second_by_key,
        sum(unmatched_counts),
        uncompared_names,
    )


def _list_common(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are in both arguments, in descending order of their frequency in `first`."""
    counts, other_counts = Counter(first), set(second)
    return tuple(name for name, _ in counts.most_common() if name in other_counts)


def _has_no_common_value(first: Sequence[StratumCounts], second: Sequence[StratumCounts], name: str) -> bool:
    """Return whether the sides have no value of this setting in common.

    Versions are compared within the scenarios that both sides have; without such a scenario, the result is False.
    """
    if name != "version":
        return {stratum.settings[name] for stratum in first}.isdisjoint(stratum.settings[name] for stratum in second)
    common_scenarios = {stratum.scenario for stratum in first} & {stratum.scenario for stratum in second}
    return bool(common_scenarios) and _collect_versions(first).isdisjoint(_collect_versions(second))


def _collect_versions(strata: Iterable[StratumCounts]) -> set[tuple[str, int]]:
    return {(stratum.scenario, stratum.settings["version"]) for stratum in strata}


def _group_by_stratum(strata: Iterable[StratumCounts], shared_names: Sequence[str]) -> StrataByKey:
    """Return the counts by scenario and the values of the settings `shared_names`."""
    strata_by_key: dict[StratumKey, list[StratumCounts]] = defaultdict(list)
    for stratum in strata:
        strata_by_key[stratum.scenario, *(stratum.settings[name] for name in shared_names)].append(stratum)
    return {key: tuple(strata) for key, strata in strata_by_key.items()}


def _keep_newest_versions(side: StrataByKey, other_side: StrataByKey) -> StrataByKey:
    """Return the counts of a side with only one version of each scenario that has a stratum on both sides.

    It is the newest version that the side has in such strata. Other scenarios keep all their versions.
    """
    newest: dict[str, int] = {}
    for scenario, version in _collect_versions(stratum for key in side if key in other_side for stratum in side[key]):
        newest[scenario] = max(version, newest.get(scenario, version))
    newest_by_key = {
        key: tuple(
            stratum
            for stratum in strata
            if stratum.settings["version"] == newest.get(stratum.scenario, stratum.settings["version"])
        )
        for key, strata in side.items()
    }
    return {key: strata for key, strata in newest_by_key.items() if strata}


def _find_uncompared_versions(
    strata: Sequence[StratumCounts], other_strata: Sequence[StratumCounts], side: StrataByKey, other_side: StrataByKey
) -> set[tuple[str, int]]:
    """Return (scenario, version) pairs of a side that are not compared.

    The other side lacks the version and has other versions of the scenario, which are different tasks.

    Args:
        strata: all counts of the side.
        other_strata: all counts of the other side.
        side: the counts of the side that are left for comparison, by stratum.
        other_side: the same counts of the other side.
    """
    compared, other_versions = (
        _collect_versions(stratum for key in side if key in other_side for stratum in side[key]),
        _collect_versions(other_strata),
    )
    other_scenarios = {scenario for scenario, _ in other_versions}
    return {pair for pair in _collect_versions(strata) - compared - other_versions if pair[0] in other_scenarios}


def _count_unmatched(side: StrataByKey, other_side: StrataByKey, uncompared: set[tuple[str, int]]) -> int:
    """Return how many strata only this side has.

    Strata whose (scenario, version) pairs are all in `uncompared` do not count, because `left_out_versions` names them.
    """
    return sum(key not in other_side and not _collect_versions(strata) <= uncompared for key, strata in side.items())
