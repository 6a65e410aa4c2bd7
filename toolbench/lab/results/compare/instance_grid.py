"""The trials of several sides by instance: passes, distinct answers and a pair of trials to read side by side."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, IntegerField, Min, Q, Value

from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.compare.baseline import BaselineComparison
from toolbench.lab.results.compare.matching import PoolChoice
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.sides import filter_side_trials
from toolbench.lab.results.compare.statistics import count_successes
from toolbench.lab.results.compare.strata import INSTANCE, StratumCounts
from toolbench.lab.results.trial_list.filter import TrialFilter

MAX_GRID_ROWS = 60
_KEYS = ("scenario", "scenario_version", "instance")
InstanceKey = tuple[str, int, int | None]


@dataclass(frozen=True, slots=True)
class InstanceCell:
    """The trials of one instance on one side.

    Attributes:
        k: successes by the metric of the comparison.
        n: trials that the metric counts.
        distinct: different answers.
        total: trials in any state, which `trials_query` lists.
        trials_query: query string of the list of exactly these trials.
        pair: this side's trial and the baseline's, with different outcomes if there are such; None for the baseline,
            and where one of them has no finished trial.
    """

    k: int
    n: int
    distinct: int
    total: int
    trials_query: str
    pair: tuple[int, int] | None

    @property
    def verdict(self) -> str:
        """Return "all" or "none" of the trials that succeeded; "" for some, or without any."""
        return "" if not self.n or 0 < self.k < self.n else "all" if self.k else "none"


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance, or all repeats of the published wording, on every side.

    Attributes:
        instance: number of the instance; None for the published wording.
        cells: one for each side, the baseline first; None where the side has no trial.
    """

    scenario: str
    version: int
    instance: int | None
    cells: tuple[InstanceCell | None, ...]


@dataclass(frozen=True, slots=True)
class InstanceGrid:
    """Instances by side.

    Attributes:
        total: instances in all.
        differing: instances in which the share of successes differs between sides.
        shows_all: whether instances without a difference are rows, too.
    """

    rows: tuple[InstanceRow, ...]
    total: int
    differing: int
    shows_all: bool

    @property
    def hidden_count(self) -> int:
        """Return how many instances the page does not show for lack of room."""
        return (self.total if self.shows_all else self.differing) - len(self.rows)

    @property
    def alike_count(self) -> int:
        """Return the number of instances in which no side differs."""
        return self.total - self.differing

    @property
    def has_versions(self) -> bool:
        """Return whether a scenario has rows of several versions."""
        return len({(row.scenario, row.version) for row in self.rows}) > len({row.scenario for row in self.rows})


def get_instance_grid(found: BaselineComparison) -> InstanceGrid:
    """Return the grid of a comparison with one query, or without one where no row is shown."""
    counts = [_sum_by_instance(found.pool.select(side), found.query.metric) for side in found.lines]
    keys = sorted({key for side in counts for key in side}, key=lambda key: (key[0], key[1], key[2] or 0))
    differing = [key for key in keys if _differs(side.get(key) for side in counts)]
    shows_all = found.query.instances == "all"
    shown = (keys if shows_all else differing)[:MAX_GRID_ROWS]
    trials = _read_trials(found, shown) if shown else {}
    rows = tuple(_build_grid_row(found, key, counts, trials) for key in shown)
    return InstanceGrid(rows, len(keys), len(differing), shows_all)


def _sum_by_instance(lines: Iterable[StratumCounts], metric: str) -> Mapping[InstanceKey, tuple[int, int]]:
    found: dict[InstanceKey, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for line in lines:
        key = (line.scenario, line.settings["version"], line.instance)
        k, n = count_successes(line, metric)
        found[key] = (found[key][0] + k, found[key][1] + n)
    return dict(found)


def _differs(counts: Iterable[tuple[int, int] | None]) -> bool:
    return len({count[0] / count[1] for count in counts if count and count[1]}) > 1


def _read_trials(
    found: BaselineComparison, keys: Sequence[InstanceKey]
) -> Mapping[tuple[int, InstanceKey], dict[str, Any]]:
    """Return the trials of these instances by side, with one query: in any state, as their list shows them."""
    query, pool = found.query, found.pool
    instances = [instance for _, _, instance in keys if instance is not None]
    chosen = Q(scenario__in={key[0] for key in keys}, cell__scenario_group=pool.group, instance_kind=pool.kind)
    chosen &= Q(instance_seed__in=instances) if instances else Q()
    parts = [
        filter_side_trials(side, demo=query.demo, chosen=query.chosen, is_finished=False)
        .filter(chosen).annotate(_side=Value(number, IntegerField()), instance=INSTANCE).values("_side", *_KEYS)
        .annotate(**_TRIAL_AGGREGATES)
        for number, side in enumerate(query.sides)
    ]  # fmt: skip
    rows = parts[0].union(*parts[1:], all=True)
    return {(row["_side"], (row["scenario"], row["scenario_version"], row["instance"])): row for row in rows}


_TRIAL_AGGREGATES = {
    "total": Count("pk"),
    "distinct": Count("answer_hash", distinct=True, filter=ANSWERED & ~Q(answer_hash="")),
    "passed_id": Min("pk", filter=Q(outcome=Trial.Outcome.PASS)),
    "failed_id": Min("pk", filter=Q(outcome__in=[Trial.Outcome.FAIL, Trial.Outcome.INFRA])),
}


def _build_grid_row(
    found: BaselineComparison,
    key: InstanceKey,
    counts: Sequence[Mapping[InstanceKey, tuple[int, int]]],
    trials: Mapping[tuple[int, InstanceKey], dict[str, Any]],
) -> InstanceRow:
    baseline = trials.get((0, key))
    cells = tuple(
        InstanceCell(
            *side[key],
            distinct=stored["distinct"],
            total=stored["total"],
            trials_query=_build_trials_query(found.query, number, key, found.pool),
            pair=_choose_pair(stored, baseline) if number and baseline else None,
        )
        if key in side and (stored := trials.get((number, key)))
        else None
        for number, side in enumerate(counts)
    )
    return InstanceRow(*key, cells)


def _choose_pair(side: Mapping[str, Any], baseline: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return a trial of the side and one of the baseline, if possible one that failed and one that passed."""
    for mine, theirs in (("failed_id", "passed_id"), ("passed_id", "failed_id")):
        if side[mine] and baseline[theirs]:
            return side[mine], baseline[theirs]
    pair = (side["failed_id"] or side["passed_id"], baseline["failed_id"] or baseline["passed_id"])
    return pair if all(pair) else None


def _build_trials_query(query: CompareQuery, number: int, key: InstanceKey, pool: PoolChoice) -> str:
    """Return the query string of the trials of an instance on a side."""
    axes = dict(query.sides[number])
    scenario, version, instance = key
    named: dict[str, Any] = {name: value for name, value in axes.items() if name not in ("run", "config")}
    return TrialFilter(
        runs=axes.get("run", ""),
        configs=axes.get("config", ""),
        scenario=scenario,
        version=version,
        instance=instance,
        group=pool.group,
        instance_kind=pool.kind,
        demo="1" if query.demo else "",
        chosen=_remove_fixed(query.chosen, axes),
        **named,
    ).query()


def _remove_fixed(chosen: ResultFilter, axes: Mapping[str, str]) -> ResultFilter:
    """Return the filter without scenarios and without the choices that the axes of the side narrow to one value."""
    return replace(
        chosen,
        scenarios=(),
        models=() if "model" in axes else chosen.models,
        profiles=() if "profile" in axes else chosen.profiles,
        strategies=() if "strategy" in axes else chosen.strategies,
    )
