"""Counts by stratum of the sides of a comparison. One SQL query reads the counts of all sides."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    FloatField,
    IntegerField,
    Max,
    Min,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)  # fmt: skip
from django.db.models.functions import Cast

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cells import MAX_RELIABLE_LAG_MS
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.models import Case as TestCase
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED

# the settings that divide the trials of a scenario into strata; the names are shown in labels
STRATUM_FIELDS = {
    "provider": F("config__provider_name"), "model": F("config__model_name"), "profile": F("config__profile"),
    "strategy": F("config__strategy"), "method": F("config__method"), "examples": F("config__examples"),
    "streamed": F("config__stream"), "tool use": F("config__tool_use_mode"), "prompt": F("prompt_version"),
    "version": F("scenario_version"),
}  # fmt: skip
_SETTING_KEYS = {name: f"_{name.replace(' ', '_')}" for name in STRATUM_FIELDS}  # aliases in SQL
# metrics of calls that violate a schema: the fewer the better
VIOLATION_METRICS = tuple(f"{kind}_calls" for kind in ("missing", "enum", "type", "range", "extra"))
# columns (k, n) of trials by metric; the metric is the share k/n of answers, calls or arguments
RATIO_COLUMNS = {
    "structured": ("structured_answers", "calling_answers"), "schema": ("valid_calls", "calls"),
    "arguments": ("arguments_right", "arguments_asked"), **{name: (name, "calls") for name in VIOLATION_METRICS},
}  # fmt: skip
HAS_ANSWER_HASH = ANSWERED & ~Q(answer_hash="")  # a trial that was refused before any answer has no hash
# seed of a drawn instance; NULL for the published wording and for test cases, as in metrics/sql/cell_trials.sql
INSTANCE = Case(
    When(Q(instance_kind=DRAWN) & ~Q(scenario__in=TestCase.objects.values("slug")), then=F("instance_seed")),
    default=Value(None),
    output_field=BigIntegerField(null=True),
)


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Counts of the trials of one instance with equal settings.

    A stratum has one StratumCounts for each drawn instance, or only one for the published wording or a test case.

    Attributes:
        settings: values of STRATUM_FIELDS, by name.
        group: the scenario group.
        kind: the instance kind.
        instance: seed of the instance; None for the published wording and for test cases.
        answered: trials that passed or failed, without failures at the trial deadline.
        tried: trials that passed, failed or had an infrastructure error.
        first_attempt_passes: trials that passed without a retry after model output.
        retried_passes: trials that passed after a user had retried them because of an error.
        repeating: whether a deterministic endpoint gave the same answer more than once.
        cell_ids: primary keys of the counted cells.
        error: smallest error probability of the cells with sequential stopping; None if no cell used it.
        durations: milliseconds of the answered trials, without the time in the queue.
        first_start: start of the first trial; None if no start is known, as in some imported runs.
        last_start: start of the last trial; None if no start is known.
        overloaded_trials: trials measured while this machine was overloaded.
        manual_trials: trials that were added manually after results were seen.
        ratios: sums of each metric of RATIO_COLUMNS, with trials as clusters; only counts for secondary metrics have
            them.
    """

    settings: Mapping[str, Any]
    scenario: str
    group: str
    kind: str
    instance: int | None
    passed: int
    answered: int
    tried: int
    first_attempt_passes: int
    retried_passes: int
    repeating: bool
    cell_ids: frozenset[int]
    error: float | None
    durations: tuple[float, ...] = ()
    output_tokens: int = 0
    first_start: datetime | None = None
    last_start: datetime | None = None
    simulated: bool = False
    overloaded_trials: int = 0
    manual_trials: int = 0
    ratios: Mapping[str, ClusterSums] = field(default_factory=dict)


def read_strata(sides: Sequence[QuerySet[Trial]]) -> tuple[tuple[StratumCounts, ...], ...]:
    """Return the counts of each side, in the order of the sides, with one SQL query."""
    settings = {_SETTING_KEYS[name]: expression for name, expression in STRATUM_FIELDS.items()}
    # PostgreSQL compares trials by these expressions in this order, so those that differ most often come first.
    expressions = {"_model": settings["_model"], "_scenario": F("scenario"), "instance": INSTANCE, **settings}
    expressions |= {"_group": F("cell__scenario_group"), "_kind": F("instance_kind")}
    keys = ("_side", *settings, "_scenario", "_group", "_kind", "instance")
    strata_by_side: list[list[StratumCounts]] = [[] for _ in sides]
    for row in aggregate_sides(sides, keys, expressions, _COUNT_AGGREGATES):
        strata_by_side[row["_side"]].append(_build_counts(row))
    return tuple(map(tuple, strata_by_side))


def collect_cell_ids(strata: Iterable[StratumCounts]) -> frozenset[int]:
    """Return the primary keys of all cells that these strata count."""
    return frozenset(pk for stratum in strata for pk in stratum.cell_ids)


def aggregate_sides(
    sides: Sequence[QuerySet[Trial]], keys: Sequence[str], expressions: Mapping[str, Any], aggregates: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    """Aggregate the trials of each side that passed, failed or had an infrastructure error, with one SQL query.

    Args:
        sides: the trials of each side; a trial may be on several sides.
        keys: keys to group by, in the order to sort the rows by; `_side` is the index of the side.
        expressions: expressions of the keys that are not columns, by key; PostgreSQL groups by them in this order.
        aggregates: aggregates of each group, by name.

    Returns:
        A row for each group, with its keys and aggregates.
    """
    parts = [
        trials.filter(TRIED).annotate(_side=Value(index, IntegerField()), **expressions).order_by().values(*keys)
        .annotate(**aggregates)
        for index, trials in enumerate(sides)
    ]  # fmt: skip
    joined = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    rows: Iterable[dict[str, Any]] = joined.order_by(*keys)
    return rows


def _build_counts(row: Mapping[str, Any]) -> StratumCounts:
    return StratumCounts(
        settings={name: row[key] for name, key in _SETTING_KEYS.items()},
        scenario=row["_scenario"],
        group=row["_group"],
        kind=row["_kind"],
        instance=row["instance"],
        passed=row["passed"],
        answered=row["answered"],
        tried=row["tried"],
        first_attempt_passes=row["first_attempt"],
        retried_passes=row["retried"],
        repeating=bool(row["deterministic"]) and row["repeated_answers"] > 0,
        cell_ids=frozenset(row["cell_ids"]),
        error=row["error"],
        durations=tuple(row["durations"] or ()),
        output_tokens=row["output_sum"] or 0,
        first_start=row["first_start"],
        last_start=row["last_start"],
        simulated=bool(row["simulated"]),
        overloaded_trials=row["overloaded"],
        manual_trials=row["added_manually"],
    )


_COUNT_AGGREGATES = {
    "passed": Count("pk", filter=Q(outcome=Trial.Outcome.PASS)),
    "answered": Count("pk", filter=ANSWERED),
    "tried": Count("pk"),
    "first_attempt": Count("pk", filter=Q(outcome=Trial.Outcome.PASS, output_retries=0)),
    "retried": Count("pk", filter=Q(outcome=Trial.Outcome.PASS, errors_retried__gt=0)),
    "repeated_answers": Count("pk", filter=HAS_ANSWER_HASH)
    - Count("answer_hash", distinct=True, filter=HAS_ANSWER_HASH),
    "deterministic": BoolOr("cell__deterministic"),
    "cell_ids": ArrayAgg("cell_id"),  # contains duplicates, because `distinct` would sort each group
    "error": Min("cell__error"),
    "durations": ArrayAgg("duration_ms", filter=ANSWERED & Q(duration_ms__isnull=False)),
    "output_sum": Sum("output_tokens"),
    "first_start": Min("started_at"),
    "last_start": Max("started_at"),
    "simulated": BoolOr("run__simulated"),
    "overloaded": Count("pk", filter=Q(client_lag_ms__gt=MAX_RELIABLE_LAG_MS)),
    "added_manually": Count("pk", filter=Q(added_by_hand=True)),
}


def read_ratios(
    sides: Sequence[QuerySet[Trial]], setting_names: Sequence[str]
) -> tuple[Mapping[tuple[object, ...], Mapping[str, ClusterSums]], ...]:
    """Return the sums of RATIO_COLUMNS of each side, with one SQL query.

    Args:
        sides: the trials of each side.
        setting_names: names of STRATUM_FIELDS.

    Returns:
        For each side, the sums by metric for each (scenario, *values of the settings). Each trial is a cluster.
    """
    settings = {_SETTING_KEYS[name]: STRATUM_FIELDS[name] for name in setting_names}
    sums_by_side: list[dict[tuple[object, ...], Mapping[str, ClusterSums]]] = [{} for _ in sides]
    for row in aggregate_sides(sides, ("_side", "scenario", *settings), settings, _RATIO_AGGREGATES):
        key = (row["scenario"], *(row[name] for name in settings))
        sums_by_side[row["_side"]][key] = {metric: _build_cluster_sums(row, metric) for metric in RATIO_COLUMNS}
    return tuple(sums_by_side)


def _build_cluster_sums(row: Mapping[str, Any], metric: str) -> ClusterSums:
    sums = {part: row[f"{metric}_{part}"] or 0 for part in ("k", "n", "kk", "kn", "nn")}
    return ClusterSums(m=row["trials"], **sums)


def _sum_product(first: str, second: str) -> Sum:
    return Sum(Cast(F(first), FloatField()) * Cast(F(second), FloatField()))


_RATIO_AGGREGATES = {"trials": Count("pk")} | {
    f"{name}_{part}": total
    for name, (k, n) in RATIO_COLUMNS.items()
    for part, total in (
        ("k", Sum(k)),
        ("n", Sum(n)),
        ("kk", _sum_product(k, k)),
        ("kn", _sum_product(k, n)),
        ("nn", _sum_product(n, n)),
    )
}
