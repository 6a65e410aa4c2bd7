"""Matching of the strata of two sides. Groups, instance kinds and scenario versions are never pooled."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.metrics.scenario_groups import DEFAULT_GROUP
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, StratumCounts

StratumKey = tuple[object, ...]
Strata = Mapping[StratumKey, tuple[StratumCounts, ...]]


@dataclass(frozen=True, slots=True)
class ComparisonCounts:
    """Counts of both sides by stratum and instance.

    Attributes:
        groups: scenario groups that both sides have, the most frequent first.
        kinds: instance kinds that both sides have, the most frequent first.
        differing: names of STRATUM_FIELDS in which the sides have no value in common, so that they are compared.
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


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The scenario group and the instance kind that are compared; others are never pooled with them.

    Attributes:
        groups: groups to choose from, the most frequent first.
        kinds: instance kinds to choose from, the most frequent first.
    """

    group: str
    groups: tuple[str, ...]
    kind: str
    kinds: tuple[str, ...]

    def select(self, lines: Iterable[StratumCounts]) -> list[StratumCounts]:
        """Return the lines of the chosen group and instance kind."""
        return [line for line in lines if line.group == self.group and line.kind == self.kind]


def choose_pool(
    first: Sequence[StratumCounts], others: Sequence[StratumCounts], group: str = "", kind: str = ""
) -> PoolChoice:
    """Choose a group and an instance kind that both have: `group` and `kind` if both have them.

    Otherwise the default group or the most frequent one is chosen, and the most frequent kind.
    """
    groups = _list_common((line.group for line in first), (line.group for line in others))
    group = group if group in groups else DEFAULT_GROUP if DEFAULT_GROUP in groups else next(iter(groups), "")
    both = ((line.kind for line in side if line.group == group) for side in (first, others))
    kinds = _list_common(*both)
    return PoolChoice(group, groups, kind if kind in kinds else next(iter(kinds), ""), kinds)


def match_sides(
    first: Sequence[StratumCounts], second: Sequence[StratumCounts], *, metric: str, group: str = "", kind: str = ""
) -> ComparisonCounts:
    """Group the lines of both sides into the strata that they can be compared in.

    Groups of scenarios are never pooled, nor are generated instances with the published wording. If the sides have a
    version of a scenario in common, versions are separate strata; otherwise each side counts its newest version.

    Args:
        first: counts of the first side.
        second: counts of the second side.
        metric: name of the success metric.
        group: the scenario group; if it is not on both sides, the default or the most frequent one is used.
        kind: the instance kind; if it is not on both sides, the most frequent one is used.
    """
    choice = choose_pool(first, second, group, kind)
    first, second = (choice.select(side) for side in (first, second))
    differing = tuple(name for name in STRATUM_FIELDS if _has_no_common_value(first, second, name))
    shared = tuple(name for name in STRATUM_FIELDS if name not in differing)
    by_first, by_second = _group_by_stratum(first, shared), _group_by_stratum(second, shared)
    if "version" in differing:
        by_first, by_second = _keep_newest_versions(by_first, by_second), _keep_newest_versions(by_second, by_first)
    uncompared = (
        _find_uncompared_versions(first, second, by_first, by_second),
        _find_uncompared_versions(second, first, by_second, by_first),
    )
    unmatched = (
        _count_unmatched(by_first, by_second, uncompared[0]),
        _count_unmatched(by_second, by_first, uncompared[1]),
    )
    named = tuple(
        f"{scenario} version {version} ({side} side)"
        for side, versions in zip(("first", "second"), uncompared, strict=True)
        for scenario, version in sorted(versions)
    )
    return ComparisonCounts(
        metric,
        choice.group,
        choice.kind,
        choice.groups,
        choice.kinds,
        differing,
        by_first,
        by_second,
        sum(unmatched),
        named,
    )


def _list_common(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Return the values that both have, the most frequent first."""
    counts, other_counts = Counter(first), set(second)
    return tuple(name for name, _ in counts.most_common() if name in other_counts)


def _has_no_common_value(first: Sequence[StratumCounts], second: Sequence[StratumCounts], name: str) -> bool:
    """Return whether the sides have no value in common; for versions, whether no scenario of both has a common one."""
    if name != "version":
        return {line.settings[name] for line in first}.isdisjoint(line.settings[name] for line in second)
    both = {line.scenario for line in first} & {line.scenario for line in second}
    return bool(both) and _list_versions(first).isdisjoint(_list_versions(second))


def _list_versions(lines: Iterable[StratumCounts]) -> set[tuple[str, int]]:
    return {(line.scenario, line.settings["version"]) for line in lines}


def _group_by_stratum(lines: Iterable[StratumCounts], shared: Sequence[str]) -> Strata:
    found: dict[StratumKey, list[StratumCounts]] = defaultdict(list)
    for line in lines:
        found[line.scenario, *(line.settings[name] for name in shared)].append(line)
    return {key: tuple(lines) for key, lines in found.items()}


def _keep_newest_versions(side: Strata, other_side: Strata) -> Strata:
    """Return the side with only the newest version of each scenario that has strata on both sides."""
    newest: dict[str, int] = {}
    for scenario, version in _list_versions(line for key in side if key in other_side for line in side[key]):
        newest[scenario] = max(version, newest.get(scenario, version))
    kept = {
        key: tuple(
            line for line in lines if line.settings["version"] == newest.get(line.scenario, line.settings["version"])
        )
        for key, lines in side.items()
    }
    return {key: lines for key, lines in kept.items() if lines}


def _find_uncompared_versions(
    lines: Sequence[StratumCounts], other_counts: Sequence[StratumCounts], side: Strata, other_side: Strata
) -> set[tuple[str, int]]:
    """Return the versions without a shared stratum, of scenarios that the other side has only in other versions."""
    compared, other_versions = (
        _list_versions(line for key in side if key in other_side for line in side[key]),
        _list_versions(other_counts),
    )
    met = {scenario for scenario, _ in other_versions}
    return {version for version in _list_versions(lines) - compared - other_versions if version[0] in met}


def _count_unmatched(side: Strata, other_side: Strata, named: set[tuple[str, int]]) -> int:
    """Return how many strata only this side has, without those whose versions are all in `named`."""
    return sum(key not in other_side and not _list_versions(lines) <= named for key, lines in side.items())
