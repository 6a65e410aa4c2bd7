"""Counts of the sides of a comparison by stratum and instance, read with one query for all sides."""

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
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED

STRATUM_FIELDS = {
    "provider": F("config__provider_name"), "model": F("config__model_name"), "profile": F("config__profile"),
    "strategy": F("config__strategy"), "method": F("config__method"), "examples": F("config__examples"),
    "streamed": F("config__stream"), "tool use": F("config__tool_use_mode"), "prompt": F("prompt_version"),
    "version": F("scenario_version"),
}  # fmt: skip
VIOLATION_METRICS = tuple(f"{kind}_calls" for kind in ("missing", "enum", "type", "range", "extra"))
RATIO_COLUMNS = {
    "structured": ("structured_answers", "calling_answers"), "schema": ("valid_calls", "calls"),
    "arguments": ("arguments_right", "arguments_asked"), **{name: (name, "calls") for name in VIOLATION_METRICS},
}  # fmt: skip
INSTANCE = Case(
    When(instance_kind=DRAWN, then=F("instance_seed")),
    default=Value(None),
    output_field=BigIntegerField(null=True),
)


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Counts of one instance in one stratum, or of all repeats of the published wording.

    Attributes:
        settings: the settings, by the names of STRATUM_FIELDS.
        instance: None for the published wording.
        late: trials that passed only after a retry of an error.
        cells: primary keys of the cells counted.
        error: the smallest error probability of cells with sequential stopping; None where no cell used it.
        durations: of answered trials, in milliseconds without the time in the queue.
        saturated: trials measured while this machine was overloaded.
        by_hand: trials added after results were seen.
        ratios: sums over trials by metric; empty unless they were read.
    """

    settings: Mapping[str, Any]
    scenario: str
    group: str
    kind: str
    instance: int | None
    passed: int
    answered: int
    tried: int
    first: int
    late: int
    repeating: bool
    cells: frozenset[int]
    error: float | None
    durations: tuple[float, ...] = ()
    output_tokens: int = 0
    began: datetime | None = None
    ended: datetime | None = None
    simulated: bool = False
    saturated: int = 0
    by_hand: int = 0
    ratios: Mapping[str, ClusterSums] = field(default_factory=dict)


def read_sides(sides: Sequence[QuerySet[Trial]]) -> tuple[tuple[StratumCounts, ...], ...]:
    """Return the counts of each side by stratum and instance, with one query."""
    named = {f"_{place}": value for place, value in enumerate(STRATUM_FIELDS.values())}
    keys = ("_side", *named, "scenario", "cell__scenario_group", "instance_kind", "instance")
    found: list[list[StratumCounts]] = [[] for _ in sides]
    for row in join_sides(sides, keys, {**named, "instance": INSTANCE}, _COUNT_AGGREGATES):
        found[row["_side"]].append(_build_counts(row))
    return tuple(map(tuple, found))


def join_sides(
    sides: Sequence[QuerySet[Trial]], keys: Sequence[str], named: Mapping[str, Any], aggregates: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    """Return the tried trials of all sides, grouped and in the order of the keys, with one query.

    Args:
        sides: the trials of each side; a trial may be on several.
        keys: columns to group by; `_side` is the number of the side.
        named: expressions of keys that are no columns.
        aggregates: what is counted of each group.
    """
    parts = [
        trials.filter(TRIED).annotate(_side=Value(number, IntegerField()), **named).order_by().values(*keys)
        .annotate(**aggregates)
        for number, trials in enumerate(sides)
    ]  # fmt: skip
    joined = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    rows: Iterable[dict[str, Any]] = joined.order_by(*keys)
    return rows


def _build_counts(row: Mapping[str, Any]) -> StratumCounts:
    return StratumCounts(
        settings={name: row[f"_{place}"] for place, name in enumerate(STRATUM_FIELDS)},
        scenario=row["scenario"],
        group=row["cell__scenario_group"],
        kind=row["instance_kind"],
        instance=row["instance"],
        passed=row["passed"],
        answered=row["answered"],
        tried=row["tried"],
        first=row["first"],
        late=row["late"],
        repeating=bool(row["fixed"]) and 0 < row["answers"] < row["answered"],
        cells=frozenset(row["cells"]),
        error=row["error"],
        durations=tuple(row["durations"] or ()),
        output_tokens=row["output"] or 0,
        began=row["began"],
        ended=row["ended"],
        simulated=bool(row["simulated"]),
        saturated=row["saturated"],
        by_hand=row["by_hand"],
    )


_COUNT_AGGREGATES = {
    "passed": Count("pk", filter=Q(outcome=Trial.Outcome.PASS)),
    "answered": Count("pk", filter=ANSWERED),
    "tried": Count("pk"),
    "first": Count("pk", filter=Q(outcome=Trial.Outcome.PASS, output_retries=0)),
    "late": Count("pk", filter=Q(outcome=Trial.Outcome.PASS, errors_retried__gt=0)),
    "answers": Count("answer_hash", distinct=True, filter=ANSWERED & ~Q(answer_hash="")),
    "fixed": BoolOr("cell__deterministic"),
    "cells": ArrayAgg("cell_id", distinct=True),
    "error": Min("cell__error"),
    "durations": ArrayAgg("duration_ms", filter=ANSWERED & Q(duration_ms__isnull=False)),
    "output": Sum("output_tokens"),
    "began": Min("started_at"),
    "ended": Max("started_at"),
    "simulated": BoolOr("run__simulated"),
    "saturated": Count("pk", filter=Q(client_lag_ms__gt=MAX_RELIABLE_LAG_MS)),
    "by_hand": Count("pk", filter=Q(added_by_hand=True)),
}


def read_ratios(
    sides: Sequence[QuerySet[Trial]], shared: Sequence[str]
) -> tuple[Mapping[tuple[object, ...], Mapping[str, ClusterSums]], ...]:
    """Return the sums of calls and answers of each side by scenario and these settings, with one query.

    Each trial is a cluster of calls.
    """
    named = {f"_{place}": STRATUM_FIELDS[name] for place, name in enumerate(shared)}
    found: list[dict[tuple[object, ...], Mapping[str, ClusterSums]]] = [{} for _ in sides]
    for row in join_sides(sides, ("_side", "scenario", *named), named, _RATIO_AGGREGATES):
        key = (row["scenario"], *(row[name] for name in named))
        found[row["_side"]][key] = {name: _build_clustered(row, name) for name in RATIO_COLUMNS}
    return tuple(found)


def _build_clustered(row: Mapping[str, Any], name: str) -> ClusterSums:
    sums = {part: row[f"{name}_{part}"] or 0 for part in ("k", "n", "kk", "kn", "nn")}
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
