"""The compare page: all sides against the baseline, and the details of a comparison of two sides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.repeated_instances import PASSED, TRIED
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Run
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.compare.aa_noise import NoiseMeasurement, measure_noise
from toolbench.lab.results.compare.baseline import BaselineComparison, compare_with_baseline
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.diagnosis import Diagnosis, diagnose
from toolbench.lab.results.compare.instance_grid import InstanceGrid, get_instance_grid
from toolbench.lab.results.compare.matching import StratumKey
from toolbench.lab.results.compare.plan_query import build_plan_query
from toolbench.lab.results.compare.query import RUN_AXES, CompareQuery
from toolbench.lab.results.compare.seed_support import describe_seed_support
from toolbench.lab.results.compare.statistics import find_instances_by_change
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, StratumCounts

MAX_CHANGED_INSTANCES = 10  # that regressed, and as many that were fixed
# The trials that `count_successes` counts and those that are successes, by metric.
_COUNTED_TRIALS = {"given": ANSWERED, "delivered": TRIED, "first": ANSWERED}
_SUCCESSFUL_TRIALS = {
    "given": PASSED, "delivered": PASSED & Q(errors_retried=0), "first": PASSED & Q(output_retries=0),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangedInstance:
    """An instance whose outcome changed, with one trial of it on each side.

    Attributes:
        change: "regressed" or "fixed".
        instance: seed of the instance.
        first: primary key of the trial on the first side.
        second: primary key of the trial on the second side.
    """

    change: str
    scenario: str
    instance: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class ComparePage:
    """A comparison of two sides with its details.

    Attributes:
        diagnosis: the diagnosis of one canonical model at two providers; None for other sides.
        noise_measurements: A/A comparisons of the runs of both sides.
        changed_instances: instances that regressed, then those that were fixed, at most MAX_CHANGED_INSTANCES of each.
        seed_support: sentences about the sampling seed; "" if nothing is paired.
    """

    comparison: Comparison
    diagnosis: Diagnosis | None
    noise_measurements: tuple[NoiseMeasurement, ...]
    changed_instances: tuple[ChangedInstance, ...]
    seed_support: str


@dataclass(frozen=True, slots=True)
class SidesPage:
    """All sides of a query against its baseline.

    Attributes:
        comparison: the comparison of all sides; its `strata` are empty.
        pair: details of a comparison of two sides; None for more sides.
        plan_query: query string with which the launch form plans the trials that the sides lack; "" if there is none.
    """

    comparison: BaselineComparison
    grid: InstanceGrid
    pair: ComparePage | None
    plan_query: str


_pages: VersionCache[SidesPage] = VersionCache(max_entries=8)


def get_sides_page(query: CompareQuery) -> SidesPage:
    """Return the page of all sides of the query.

    The figures are kept in memory until those of a run in scope change. Diagnosis and seed support are computed on
    each call, because they also depend on presets and probes.
    """
    version = find_pool_version(_build_run_condition(query))
    page = _pages.get(version, query.query(), lambda: _build_sides_page(query))
    return replace(page, pair=page.pair and _add_diagnosis(page.pair))


def _build_run_condition(query: CompareQuery) -> Q:
    """Return the condition of the runs whose trials the sides may count."""
    ids = {axis: [int(pk) for side in query.sides for pk in side.get(axis, "").split(",") if pk] for axis in RUN_AXES}
    condition = Q(pk__in=ids["run"]) | Q(configs__in=ids["config"])
    if all(any(axis in side for axis in RUN_AXES) for side in query.sides):
        return condition
    return condition | Run.COUNTED & Q(simulated=query.demo, imported=False)


def _build_sides_page(query: CompareQuery) -> SidesPage:
    comparison = compare_with_baseline(query)
    pair = None if query.has_more_than_two else _build_pair_page(query, comparison.strata)
    plan_query = build_plan_query(comparison)
    return SidesPage(replace(comparison, strata=()), get_instance_grid(comparison), pair, plan_query)


def _build_pair_page(query: CompareQuery, strata: Sequence[Sequence[StratumCounts]]) -> ComparePage:
    """Return the page of two sides without diagnosis and seed support.

    Args:
        query: the sides.
        strata: counts of both sides.
    """
    comparison = get_comparison(query, strata)
    if not comparison.comparable:
        return ComparePage(comparison, None, (), (), "")
    changed_instances = _list_changed_instances(comparison, "regressed") + _list_changed_instances(comparison, "fixed")
    return ComparePage(comparison, None, measure_noise(comparison), changed_instances, "")


def _add_diagnosis(pair: ComparePage) -> ComparePage:
    """Return the page with diagnosis and seed support."""
    if not pair.comparison.comparable:
        return pair
    seed_support = describe_seed_support(pair.comparison)
    return replace(pair, diagnosis=diagnose(pair.comparison), seed_support=seed_support)


def _list_changed_instances(comparison: Comparison, change: str) -> tuple[ChangedInstance, ...]:
    """Return instances with a change, at most MAX_CHANGED_INSTANCES.

    The function sends two SQL queries, or none if there is no such instance.

    Args:
        comparison: the comparison of two sides.
        change: "regressed" or "fixed".
    """
    keys = find_instances_by_change(comparison.counts, change, MAX_CHANGED_INSTANCES)
    if not keys:
        return ()
    failed_side = 1 if change == "regressed" else 0
    first_ids, second_ids = (_find_trial_ids(comparison, side, keys, has_failed=side == failed_side) for side in (0, 1))
    return tuple(
        ChangedInstance(change, str(key[0]), instance, first_ids[*key, instance], second_ids[*key, instance])
        for key, instance in keys
        if (*key, instance) in first_ids and (*key, instance) in second_ids
    )


def _find_trial_ids(
    comparison: Comparison, side: int, keys: list[tuple[StratumKey, int]], *, has_failed: bool
) -> dict[StratumKey, int]:
    """Return the primary key of one trial of each instance on a side.

    The keys of the result are strata with the seed of the instance appended. An instance is absent if none of its
    trials has the required outcome.

    Args:
        comparison: the comparison of two sides.
        side: index of the side.
        keys: (stratum, seed of the instance) pairs.
        has_failed: whether the metric counts the trials as failures; otherwise it counts them as successes.
    """
    trials = comparison.trials[side].filter(instance_seed__in=[instance for _, instance in keys])
    is_success = _SUCCESSFUL_TRIALS[comparison.query.metric]
    condition = _COUNTED_TRIALS[comparison.query.metric] & ~is_success if has_failed else is_success
    settings = [field for name, field in STRATUM_FIELDS.items() if name not in comparison.counts.differing]
    rows = trials.filter(condition).values_list("scenario", *settings, "instance_seed", "pk")
    return {tuple(key): pk for *key, pk in rows}
