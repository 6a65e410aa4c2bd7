"""Everything that the compare page shows: all sides against the baseline, and more of a comparison of two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Trial
from toolbench.lab.results.compare.baseline import BaselineComparison, compare_with_baseline
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.diagnosis import Diagnosis, diagnose
from toolbench.lab.results.compare.instance_grid import InstanceGrid, get_instance_grid
from toolbench.lab.results.compare.matching import StratumKey
from toolbench.lab.results.compare.noise_floor import NoiseMeasurement, measure_noise
from toolbench.lab.results.compare.plan_query import build_plan_query
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.seed_support import describe_seed_support
from toolbench.lab.results.compare.statistics import find_instances_by_change
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, StratumCounts

MAX_CHANGED_INSTANCES = 10  # instances of a fate


@dataclass(frozen=True, slots=True)
class ChangedInstance:
    """An instance whose outcome changed, with one trial of it on each side.

    Attributes:
        fate: "regressed" or "fixed".
        first: primary key of the trial on the first side.
        second: primary key of the trial on the second side.
    """

    fate: str
    scenario: str
    instance: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The comparison and what belongs to it.

    Attributes:
        diagnosis: None unless one canonical model is compared at two providers.
        seeds: text about the sampling seed; empty if nothing is paired.
    """

    page: Comparison
    diagnosis: Diagnosis | None
    noise_measurements: tuple[NoiseMeasurement, ...]
    changed: tuple[ChangedInstance, ...]
    seeds: str


@dataclass(frozen=True, slots=True)
class SidesPage:
    """All sides of a query against its baseline.

    Attributes:
        pair: more about a comparison of two sides; None for more sides.
        plan_query: query string of a new run with the trials that the sides lack; "" where there is none to plan.
    """

    found: BaselineComparison
    grid: InstanceGrid
    pair: ComparePage | None
    plan_query: str


_pages: VersionCache[SidesPage] = VersionCache(max_entries=8)


def get_sides_page(query: CompareQuery) -> SidesPage:
    """Return all sides of the query. A page over ended runs is kept in memory until their sums change."""
    named = [int(pk) for side in query.sides for pk in side.get("run", "").split(",") if pk]
    has_other_runs = not all("run" in side for side in query.sides)
    scope = Q(simulated=query.demo, imported=False) if has_other_runs else Q(pk=None)
    if any("config" in side for side in query.sides):
        scope = Q()
    version = find_pool_version(scope | Q(pk__in=named))
    page = _pages.get(version, query.query(), lambda: _read_sides_page(query))
    return replace(page, pair=page.pair and _add_current_facts(page.pair))


def get_compare_page(query: CompareQuery) -> ComparePage:
    """Return the comparison of the first two sides of the query, with what belongs to it."""
    return _add_current_facts(_read_pair(query))


def _read_sides_page(query: CompareQuery) -> SidesPage:
    found = compare_with_baseline(query)
    pair = None if query.has_several else _read_pair(query, found.lines)
    return SidesPage(replace(found, lines=()), get_instance_grid(found), pair, build_plan_query(found))


def _read_pair(query: CompareQuery, lines: Sequence[Sequence[StratumCounts]] | None = None) -> ComparePage:
    """Return what depends on trials only. `lines` are the counts of both sides, where they were read before."""
    page = get_comparison(query, lines)
    if not page.comparable:
        return ComparePage(page, None, (), (), "")
    changed = _list_changed_instances(page, "regressed") + _list_changed_instances(page, "fixed")
    return ComparePage(page, None, measure_noise(page), changed, "")


def _add_current_facts(pair: ComparePage) -> ComparePage:
    """Return the page with what also depends on presets and on probes of the endpoints."""
    if not pair.page.comparable:
        return pair
    return replace(pair, diagnosis=diagnose(pair.page), seeds=describe_seed_support(pair.page))


def _list_changed_instances(page: Comparison, fate: str) -> tuple[ChangedInstance, ...]:
    """Return the instances with this change. Two queries if there are any."""
    keys = find_instances_by_change(page.counts, fate, MAX_CHANGED_INSTANCES)
    if not keys:
        return ()
    first, second = (_find_trials(page, side, keys, failed=(side == 1) == (fate == "regressed")) for side in (0, 1))
    return tuple(
        ChangedInstance(fate, str(key[0]), instance, first[*key, instance], second[*key, instance])
        for key, instance in keys
        if (*key, instance) in first and (*key, instance) in second
    )


def _find_trials(
    page: Comparison, side: int, keys: list[tuple[StratumKey, int]], *, failed: bool
) -> dict[StratumKey, int]:
    """Return a trial of each instance by its stratum and number: a failed one if `failed`, else a passed one."""
    found = page.trials[side].filter(instance_seed__in=[instance for _, instance in keys])
    outcomes = [Trial.Outcome.FAIL, Trial.Outcome.INFRA] if failed else [Trial.Outcome.PASS]
    stratum = [value for name, value in STRATUM_FIELDS.items() if name not in page.counts.differing]
    rows = found.filter(outcome__in=outcomes).values_list("scenario", *stratum, "instance_seed", "pk")
    return {tuple(key): pk for *key, pk in rows}
