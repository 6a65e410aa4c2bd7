"""Table of instances by side: successes, distinct answers, and a pair of trials for the diff view."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, IntegerField, Min, Q, Value

from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import Trial
from toolbench.lab.results.compare.baseline import BaselineComparison
from toolbench.lab.results.compare.matching import PoolChoice
from toolbench.lab.results.compare.query import RUN_AXES, CompareQuery
from toolbench.lab.results.compare.sides import filter_side_trials
from toolbench.lab.results.compare.statistics import count_successes
from toolbench.lab.results.compare.strata import HAS_ANSWER_HASH, INSTANCE, StratumCounts
from toolbench.lab.results.trial_list.filter import TrialFilter

MAX_GRID_ROWS = 60
_KEY_COLUMNS = ("scenario", "scenario_version", "instance")
InstanceKey = tuple[str, int, int | None]  # scenario, its version, `StratumCounts.instance`


@dataclass(frozen=True, slots=True)
class InstanceCell:
    """The trials of one instance on one side.

    Attributes:
        k: successes by the metric of the comparison.
        n: trials that the metric counts.
        distinct_answers: number of different answers.
        trial_count: number of trials in any state.
        trials_query: query string of the list of these trials.
        trial_pair: primary keys of a trial of this side and a trial of the baseline; if possible, exactly one of them
            passed. None for the baseline itself, and if the baseline has no trial that passed, failed or had an
            infrastructure error.
    """

    k: int
    n: int
    distinct_answers: int
    trial_count: int
    trials_query: str
    trial_pair: tuple[int, int] | None

    @property
    def success_extent(self) -> str:
        """Return "all" or "none" if all or none of the `n` trials succeeded; "" for some, or without trials."""
        if not self.n or 0 < self.k < self.n:
            return ""
        return "all" if self.k else "none"


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance, or all repeats of the published wording or of a test case, on every side.

    Attributes:
        instance: seed of the instance; None for the published wording and for test cases.
        cells: a cell for each side, the baseline first; None for a side without a trial that passed, failed or had an
            infrastructure error.
    """

    scenario: str
    version: int
    instance: int | None
    cells: tuple[InstanceCell | None, ...]


@dataclass(frozen=True, slots=True)
class InstanceGrid:
    """Table of instances by side.

    Attributes:
        rows: at most MAX_GRID_ROWS instances, sorted by scenario, version and seed.
        total: number of all instances.
        differing: number of instances whose share of successes differs between sides.
        shows_all: whether the table also has instances without a difference.
    """

    rows: tuple[InstanceRow, ...]
    total: int
    differing: int
    shows_all: bool

    @property
    def selected_count(self) -> int:
        """Return the number of instances that the table would have without the limit of MAX_GRID_ROWS."""
        return self.total if self.shows_all else self.differing

    @property
    def equal_count(self) -> int:
        """Return the number of instances without a difference between the sides."""
        return self.total - self.differing

    @property
    def has_versions(self) -> bool:
        """Return whether there are rows of several versions of a scenario."""
        return len({(row.scenario, row.version) for row in self.rows}) > len({row.scenario for row in self.rows})


def get_instance_grid(comparison: BaselineComparison) -> InstanceGrid:
    """Return the table of instances by side with one SQL query, or with none if there are no rows."""
    counts_by_side = [
        _sum_by_instance(comparison.pool.select(strata), comparison.query.metric) for strata in comparison.strata
    ]
    keys = sorted({key for counts in counts_by_side for key in counts}, key=lambda key: (key[0], key[1], key[2] or 0))
    differing = [key for key in keys if _has_difference(counts.get(key) for counts in counts_by_side)]
    shows_all = comparison.query.instances == "all"
    shown_keys = (keys if shows_all else differing)[:MAX_GRID_ROWS]
    aggregates = _read_trial_aggregates(comparison, shown_keys) if shown_keys else {}
    rows = tuple(_build_grid_row(comparison, key, counts_by_side, aggregates) for key in shown_keys)
    return InstanceGrid(rows, len(keys), len(differing), shows_all)


def _sum_by_instance(strata: Iterable[StratumCounts], metric: str) -> Mapping[InstanceKey, tuple[int, int]]:
    """Return (successes, trials) of each instance, over all settings of the side."""
    sums: dict[InstanceKey, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for stratum in strata:
        key = (stratum.scenario, stratum.settings["version"], stratum.instance)
        k, n = count_successes(stratum, metric)
        sums[key] = (sums[key][0] + k, sums[key][1] + n)
    return dict(sums)


def _has_difference(counts: Iterable[tuple[int, int] | None]) -> bool:
    """Return whether the shares of successes differ between sides.

    Args:
        counts: (successes, trials) of each side. None and counts without trials are ignored.
    """
    return len({count[0] / count[1] for count in counts if count and count[1]}) > 1


def _read_trial_aggregates(
    comparison: BaselineComparison, keys: Sequence[InstanceKey]
) -> Mapping[tuple[int, InstanceKey], dict[str, Any]]:
    """Return the values of _TRIAL_AGGREGATES over trials in any state, by (index of the side, instance).

    The function sends one SQL query. A side without a trial of an instance has no entry for it.
    """
    query, pool = comparison.query, comparison.pool
    seeds = [seed for _, _, seed in keys if seed is not None]
    condition = Q(scenario__in={key[0] for key in keys}, cell__scenario_group=pool.group, instance_kind=pool.kind)
    condition &= Q(instance=None) | Q(instance__in=seeds)
    parts = [
        filter_side_trials(side, demo=query.demo, chosen=query.chosen, finished_only=False)
        .annotate(_side=Value(index, IntegerField()), instance=INSTANCE).filter(condition)
        .values("_side", *_KEY_COLUMNS).annotate(**_TRIAL_AGGREGATES)
        for index, side in enumerate(query.sides)
    ]  # fmt: skip
    rows = parts[0].union(*parts[1:], all=True)
    return {(row["_side"], (row["scenario"], row["scenario_version"], row["instance"])): row for row in rows}


_TRIAL_AGGREGATES = {
    "trial_count": Count("pk"),
    "distinct_answers": Count("answer_hash", distinct=True, filter=HAS_ANSWER_HASH),
    "passed_id": Min("pk", filter=Q(outcome=Trial.Outcome.PASS)),
    "failed_id": Min("pk", filter=Q(outcome__in=[Trial.Outcome.FAIL, Trial.Outcome.INFRA])),
}


def _build_grid_row(
    comparison: BaselineComparison,
    key: InstanceKey,
    counts_by_side: Sequence[Mapping[InstanceKey, tuple[int, int]]],
    aggregates: Mapping[tuple[int, InstanceKey], dict[str, Any]],
) -> InstanceRow:
    """Return the row of an instance.

    Args:
        comparison: the comparison of all sides.
        key: the instance.
        counts_by_side: results of `_sum_by_instance`, the baseline first.
        aggregates: result of `_read_trial_aggregates`.
    """
    baseline_aggregates = aggregates.get((0, key))
    cells = tuple(
        InstanceCell(
            *counts[key],
            distinct_answers=side_aggregates["distinct_answers"],
            trial_count=side_aggregates["trial_count"],
            trials_query=_build_trials_query(comparison.query, index, key, comparison.pool),
            trial_pair=_choose_trial_pair(side_aggregates, baseline_aggregates)
            if index and baseline_aggregates
            else None,
        )
        if key in counts and (side_aggregates := aggregates.get((index, key)))
        else None
        for index, counts in enumerate(counts_by_side)
    )
    return InstanceRow(*key, cells)


def _choose_trial_pair(side: Mapping[str, Any], baseline: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return a trial of a side and a trial of the baseline; if possible, exactly one of them passed.

    An infrastructure error counts as a failure.

    Args:
        side: values of _TRIAL_AGGREGATES for the side.
        baseline: values of _TRIAL_AGGREGATES for the baseline.

    Returns:
        The primary keys of both trials; None if the side or the baseline has no trial that passed or failed.
    """
    for side_name, baseline_name in (("failed_id", "passed_id"), ("passed_id", "failed_id")):
        if side[side_name] and baseline[baseline_name]:
            return side[side_name], baseline[baseline_name]
    pair = (side["failed_id"] or side["passed_id"], baseline["failed_id"] or baseline["passed_id"])
    return pair if all(pair) else None


def _build_trials_query(query: CompareQuery, side_index: int, key: InstanceKey, pool: PoolChoice) -> str:
    """Return the query string of the list of trials of an instance on a side."""
    axes = dict(query.sides[side_index])
    scenario, version, instance = key
    settings: dict[str, Any] = {name: value for name, value in axes.items() if name not in RUN_AXES}
    return TrialFilter(
        runs=axes.get("run", ""),
        configs=axes.get("config", ""),
        scenario=scenario,
        version=version,
        instance=instance,
        group=pool.group,
        instance_kind=pool.kind,
        demo="1" if query.demo else "",
        chosen=_drop_side_choices(query.chosen, axes),
        **settings,
    ).query()


def _drop_side_choices(chosen: ResultFilter, axes: Mapping[str, str]) -> ResultFilter:
    """Return the filter without scenarios and without the choices that an axis of the side replaces."""
    return replace(
        chosen,
        scenarios=(),
        models=() if "model" in axes else chosen.models,
        profiles=() if "profile" in axes else chosen.profiles,
        strategies=() if "strategy" in axes else chosen.strategies,
    )
