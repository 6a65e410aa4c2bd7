"""Trials by model, scenario version, outcome and cause: from stored pools where the runs have ended, else from trials.

The pools are refreshed together with those of cells (lab/metrics/pools.py). They hold no figure that a page could not
count from the trials.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Aggregate, BinaryField, Count, F, Min, Q, QuerySet, Sum

from toolbench.lab.metrics.pool_version import read_usable_version
from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS, ResultFilter
from toolbench.lab.metrics.times import ConcatenatedTimes
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import CausePool, Run, Trial

FINISHED_OUTCOMES = (Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA)
_COUNTED = Q(outcome__in=FINISHED_OUTCOMES) | ~Q(cause="", failure_class="")
_MODEL_COLUMNS = ("provider_name", "model_name")
_TRIAL_COLUMNS = (
    "scenario", "scenario_version", "instance_kind", "outcome", "taxonomy", "cause", "cause_signature",
    "failure_class", "signature",
)  # fmt: skip
_LINE_KEY = (*_MODEL_COLUMNS, "imported", *_TRIAL_COLUMNS)
_POOL_KEY = ("simulated", "imported", *_MODEL_COLUMNS, "profile", "strategy", *_TRIAL_COLUMNS)
_NAMES = {name: F(f"config__{name}") for name in (*_MODEL_COLUMNS, "profile", "strategy")} | {
    name: F(f"run__{name}") for name in ("simulated", "imported")
}
_RUN_ID_BYTES = 8


class _RunIds(Aggregate):
    """The distinct runs of a group of trials, in the form of CausePool."""

    function = "string_agg"
    template = "%(function)s(DISTINCT int8send(%(expressions)s), ''::bytea)"
    output_field = BinaryField()


_SUMS = {
    "trials": Count("pk"),
    "first_trial": Min("pk"),
    "first_seen": Min("finished_at"),
    "runs": _RunIds("run_id"),
}


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Trials of one model that are equal in scenario version, outcome and cause.

    Attributes:
        taxonomy: version of the table of causes that classified them; 0 for none.
        cause: code of the decisive problem; "" for a pass.
        failure_class: code of the first problem by the verdict; "" for a pass.
        first_trial: the smallest primary key.
        runs: their runs in the form of CausePool, repeats allowed.
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
        """The distinct runs, each as bytes."""
        return {self.runs[start : start + _RUN_ID_BYTES] for start in range(0, len(self.runs), _RUN_ID_BYTES)}


@dataclass(frozen=True, slots=True)
class CauseScope:
    """Which trials are counted.

    Attributes:
        chosen: models, profiles, strategies, scenarios and times.
        simulated: whether runs of simulated models are in scope instead of others.
        imported: whether imported runs are in scope instead of others.
        runs: primary keys of named runs, for which the kinds do not count; () for all runs of the kind.
    """

    chosen: ResultFilter
    simulated: bool = False
    imported: bool = False
    runs: tuple[int, ...] = ()

    @property
    def kinds(self) -> dict[str, bool]:
        """Return the kind of runs as conditions on the columns of a run or a pool."""
        return {"simulated": self.simulated, "imported": self.imported}

    def filter_runs(self) -> QuerySet[Run]:
        """Return the runs of the kind or those named; the times of `chosen` are no condition on them."""
        kept = Run.objects.filter(deleted_at=None)
        return kept.filter(pk__in=self.runs) if self.runs else kept.filter(**self.kinds)

    def filter_pools(self) -> QuerySet[CausePool]:
        """Return the pools in scope, which know neither named runs nor times."""
        chosen = {f"{CHOICE_COLUMNS[name]}__in": values for name, values in self.chosen.choices.items() if values}
        return CausePool.objects.filter(**self.kinds, **chosen).order_by()


@dataclass(frozen=True, slots=True)
class CauseSums:
    """The lines of a scope.

    Attributes:
        lines: in no order; several may have equal keys.
        version: the same version always has the same lines; None for lines that may change at any time.
    """

    lines: tuple[CauseLine, ...]
    version: UUID | None


_settled_lines: VersionCache[tuple[CauseLine, ...]] = VersionCache(max_entries=8)


def sum_causes(scope: CauseScope) -> CauseSums:
    """Return the counted trials in scope with four queries at most."""
    version, runs = read_usable_version(), scope.filter_runs()
    if version is not None:
        settled = _settled_lines.get(version, scope, lambda: _sum_settled(scope))
        recent = _sum_trials(scope, runs.filter(pooled=False))
        if read_usable_version() == version:
            return CauseSums((*settled, *recent), None if recent else version)
    return CauseSums(_sum_trials(scope, runs), None)


def write_cause_pools(models: set[tuple[str, str]]) -> None:
    """Derive the pools of these models, each a provider and a name, anew from the trials of pooled runs."""
    for provider_name, model_name in sorted(models):
        CausePool.objects.filter(provider_name=provider_name, model_name=model_name).delete()
    names = sorted({model_name for _, model_name in models})
    trials = Trial.objects.filter(_COUNTED, run__pooled=True, config__model_name__in=names).order_by()
    rows = trials.annotate(**_NAMES).values(*_POOL_KEY).annotate(**_SUMS)
    kept = [row for row in rows if (row["provider_name"], row["model_name"]) in models]
    CausePool.objects.bulk_create([CausePool(**row) for row in kept], batch_size=2_000)


def _sum_settled(scope: CauseScope) -> tuple[CauseLine, ...]:
    """Return the lines of pooled runs: from the pools, or from trials where runs are named or chosen by time."""
    if scope.runs or scope.chosen.has_time:
        return _sum_trials(scope, scope.filter_runs().filter(pooled=True))
    grouped = scope.filter_pools().values_list(*_LINE_KEY)
    rows = grouped.annotate(Sum("trials"), Min("first_trial"), Min("first_seen"), all_runs=ConcatenatedTimes("runs"))
    return tuple(CauseLine(*row) for row in rows)


def _sum_trials(scope: CauseScope, runs: QuerySet[Run]) -> tuple[CauseLine, ...]:
    trials = Trial.objects.filter(_COUNTED, scope.chosen.condition, run__in=runs).order_by()
    rows = trials.annotate(**_NAMES).values_list(*_LINE_KEY).annotate(**_SUMS)
    return tuple(CauseLine(*row) for row in rows)
