"""Counts of trials by model, scenario version, outcome and cause, from stored pools and from trials.

The pools count the trials of ended runs. They are refreshed together with the pools of cells (lab/metrics/pools.py).
Trials of other runs are counted when a page is viewed; those of the playground only if the page names their runs.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Aggregate, BinaryField, Count, F, Func, Min, Q, QuerySet, Sum

from toolbench.lab.metrics.pool_version import find_pool_version, read_usable_version
from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS, ResultFilter
from toolbench.lab.metrics.times import ConcatenatedBytes
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import CausePool, Run, Trial

FINISHED_OUTCOMES = (Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA)
# Trials that are counted: those that passed, failed or had an infrastructure error, and others with a cause or a
# failure class.
_COUNTED = Q(outcome__in=FINISHED_OUTCOMES) | ~Q(cause="", failure_class="")
# Runs whose trials the pools count. A refresh marks runs of the playground as pooled too, but writes no pools of them.
_IN_POOLS = Run.COUNTED & Q(pooled=True)
_MODEL_COLUMNS = ("provider_name", "model_name")
_TRIAL_COLUMNS = (
    "scenario", "scenario_version", "instance_kind", "outcome", "taxonomy", "cause", "cause_signature",
    "failure_class", "signature",
)  # fmt: skip
_LINE_KEY = (*_MODEL_COLUMNS, "imported", *_TRIAL_COLUMNS)
_POOL_KEY = ("simulated", "imported", *_MODEL_COLUMNS, "profile", "strategy", *_TRIAL_COLUMNS)
_RELATED_COLUMNS = {name: F(f"config__{name}") for name in (*_MODEL_COLUMNS, "profile", "strategy")} | {
    name: F(f"run__{name}") for name in ("simulated", "imported")
}
_RUN_ID_BYTES = 8


class _RunIds(Aggregate):
    """Aggregate of the distinct ids of a group's runs, encoded as in `CausePool.runs`."""

    function = "string_agg"
    template = "%(function)s(DISTINCT int8send(%(expressions)s), ''::bytea)"
    output_field = BinaryField()


_AGGREGATES = {
    "trials": Count("pk"),
    "first_trial": Min("pk"),
    "first_seen": Min("finished_at"),
    "runs": _RunIds("run_id"),
}


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Count of the trials of one model with the same values in the attributes before `count`.

    Attributes:
        imported: whether the trials are of imported runs.
        version: the scenario version.
        kind: the instance kind.
        taxonomy: version of the table of causes that classified the trials; 0 if none did.
        cause: code of the decisive problem; "" if the trials neither failed nor had an infrastructure error, or if they
            are not classified.
        cause_signature: key of the failure group: cause, scenario, JSON path and turn; "" without a cause.
        failure_class: code of the first problem by the verdict; "" for a pass.
        signature: key of the failure group by the verdict: failure class, scenario and JSON path; "" for a pass.
        count: the number of trials.
        first_trial: the smallest primary key of the trials.
        first_seen: when the first of the trials finished; None if none has finished.
        runs: the ids of the trials' runs, encoded as in `CausePool.runs`; an id may be repeated.
    """

    provider: str
    model: str
    imported: bool
    scenario: str
    version: int
    kind: str
    outcome: str
    taxonomy: int
    cause: str
    cause_signature: str
    failure_class: str
    signature: str
    count: int
    first_trial: int
    first_seen: datetime | None
    runs: bytes

    @property
    def run_ids(self) -> set[bytes]:
        """The distinct ids of the runs, each as 8 bytes."""
        return {self.runs[start : start + _RUN_ID_BYTES] for start in range(0, len(self.runs), _RUN_ID_BYTES)}


def build_kind_conditions(*, simulated: bool, imported: bool) -> dict[str, bool]:
    """Return the conditions that select real, simulated or imported runs, by column of a run or pool.

    Args:
        simulated: True for runs of simulated models, False for runs of real models; ignored for imported runs.
        imported: True for imported runs, simulated or not; False for the others.
    """
    return {"imported": True} if imported else {"simulated": simulated, "imported": False}


@dataclass(frozen=True, slots=True)
class CauseScope:
    """Scope of a count: which trials are counted.

    Attributes:
        chosen: filter by models, profiles, strategies, scenarios and times.
        simulated: True for runs of simulated models, False for runs of real models.
        imported: True for imported runs, simulated or not; False for the others.
        runs: primary keys of the only runs in scope, also if `simulated` and `imported` do not match; () for all runs
            that match.
    """

    chosen: ResultFilter
    simulated: bool = False
    imported: bool = False
    runs: tuple[int, ...] = ()

    @property
    def kinds(self) -> dict[str, bool]:
        """Conditions for `simulated` and `imported`, by the column of a run or pool."""
        return build_kind_conditions(simulated=self.simulated, imported=self.imported)

    def filter_runs(self) -> QuerySet[Run]:
        """Return the runs in scope that are not deleted.

        Runs of the playground are included only if `runs` has them. `chosen` is not applied.
        """
        runs = Run.objects.filter(deleted_at=None)
        return runs.filter(pk__in=self.runs) if self.runs else runs.filter(Run.COUNTED, **self.kinds)

    def filter_pools(self) -> QuerySet[CausePool]:
        """Return the pools in scope.

        Must not be called if `runs` or times are chosen, because pools cannot be filtered by them.
        """
        chosen = {f"{CHOICE_COLUMNS[name]}__in": values for name, values in self.chosen.choices.items() if values}
        return CausePool.objects.filter(**self.kinds, **chosen).order_by()


@dataclass(frozen=True, slots=True)
class CauseSums:
    """The lines of a scope.

    Attributes:
        lines: the counts in no order; several lines may have the same values in the attributes before `count`.
        version: the version of the pools, as a key for caches, if there are lines and all of them count trials of
            pooled runs; else None.
    """

    lines: tuple[CauseLine, ...]
    version: UUID | None


_named_runs_cache: VersionCache[tuple[CauseLine, ...]] = VersionCache(max_entries=8)
_pooled_lines_cache: VersionCache[tuple[CauseLine, ...]] = VersionCache(max_entries=8)


def sum_causes(scope: CauseScope) -> CauseSums:
    """Count the trials in scope, with at most six queries."""
    runs = scope.filter_runs()
    version = find_pool_version(Q(pk__in=scope.runs)) if scope.runs else None
    if version is not None:
        lines = _named_runs_cache.get(version, scope, lambda: _sum_trials(scope, runs))
        return CauseSums(lines, version if lines else None)
    version = read_usable_version()
    if version is not None:
        pooled_lines = _pooled_lines_cache.get(version, scope, lambda: _sum_pooled_runs(scope))
        # If the scope names no runs, none is of the playground. PostgreSQL estimates the shorter condition better.
        other_lines = _sum_trials(scope, runs.exclude(_IN_POOLS) if scope.runs else runs.filter(pooled=False))
        if read_usable_version() == version:  # else the pools have changed between the queries
            is_pooled = bool(pooled_lines) and not other_lines
            return CauseSums((*pooled_lines, *other_lines), version if is_pooled else None)
    return CauseSums(_sum_trials(scope, runs), None)


def write_cause_pools(models: set[tuple[str, str]]) -> None:
    """Replace the pools of these models by counts of the trials of pooled runs.

    Args:
        models: (provider name, model name) pairs.
    """
    for provider_name, model_name in sorted(models):
        CausePool.objects.filter(provider_name=provider_name, model_name=model_name).delete()
    model_names = sorted({model_name for _, model_name in models})
    runs = Run.objects.filter(_IN_POOLS)
    trials = Trial.objects.filter(_COUNTED, run__in=runs, config__model_name__in=model_names).order_by()
    rows = trials.annotate(**_RELATED_COLUMNS).values(*_POOL_KEY).annotate(**_AGGREGATES)
    model_rows = [row for row in rows if (row["provider_name"], row["model_name"]) in models]
    CausePool.objects.bulk_create([CausePool(**row) for row in model_rows], batch_size=2_000)


def _sum_pooled_runs(scope: CauseScope) -> tuple[CauseLine, ...]:
    """Return the lines of pooled runs: from the pools, or from trials if the scope names runs or times."""
    if scope.runs or scope.chosen.has_time:
        return _sum_trials(scope, scope.filter_runs().filter(_IN_POOLS))
    grouped = scope.filter_pools().values_list(*_LINE_KEY)
    rows = grouped.annotate(Sum("trials"), Min("first_trial"), Min("first_seen"), all_runs=ConcatenatedBytes("runs"))
    return tuple(CauseLine(*row) for row in rows)


def _sum_trials(scope: CauseScope, runs: QuerySet[Run]) -> tuple[CauseLine, ...]:
    trials = Trial.objects.filter(_COUNTED, scope.chosen.condition, run__in=runs).order_by()
    aggregates: dict[str, Aggregate | Func] = dict(_AGGREGATES)
    if len(scope.runs) == 1:  # distinct ids are not needed; for them, PostgreSQL would sort all trials
        aggregates["runs"] = Func("run_id", function="int8send", output_field=BinaryField())
    rows = trials.annotate(**_RELATED_COLUMNS).values_list(*_LINE_KEY).annotate(**aggregates)
    return tuple(CauseLine(*row) for row in rows)
