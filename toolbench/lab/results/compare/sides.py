"""One side of a comparison: its trials, summed by stratum and instance in one query."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db.models import (
    Avg,
    BigIntegerField,
    Case,
    Count,
    F,
    FloatField,
    Max,
    Min,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)  # fmt: skip
from django.db.models.functions import Cast

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cells import SATURATED_LAG_MS
from toolbench.lab.metrics.cost import add_costs, estimate_cost_per_success, sum_costs
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.retries import RetryCounts, count_retries
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.compare.query import RUN_AXES
from toolbench.lab.results.trial_list.filter import NO_EXAMPLES, STREAMED

STRATUM_FIELDS = {
    "provider": F("config__provider_name"), "model": F("config__model_name"), "profile": F("config__profile"),
    "strategy": F("config__strategy"), "method": F("config__method"), "examples": F("config__examples"),
    "streamed": F("config__stream"), "tool use": F("config__tool_use_mode"), "prompt": F("prompt_version"),
    "version": F("scenario_version"),
}  # fmt: skip
AXIS_COLUMNS = {
    "provider": "config__provider_name", "model": "config__model_name", "canonical": "config__canonical",
    "profile": "config__profile", "strategy": "config__strategy", "method": "config__method",
    "prompt": "prompt_version", "upstream": "upstream", "day": "started_at__date",
}  # fmt: skip
VIOLATION_METRICS = tuple(f"{kind}_calls" for kind in ("missing", "enum", "type", "range", "extra"))
RATIO_COLUMNS = {
    "structured": ("structured_answers", "calling_answers"), "schema": ("valid_calls", "calls"),
    "arguments": ("arguments_right", "arguments_asked"), **{name: (name, "calls") for name in VIOLATION_METRICS},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Counts of one instance in one stratum, or of all repeats of the published wording.

    Attributes:
        settings: the settings, by the names of STRATUM_FIELDS.
        instance: None for the published wording.
        late: trials that passed only after a retry of an error.
        ratios: sums over trials, by metric.
        cells: primary keys of the cells counted.
        error: the smallest error probability of cells with sequential stopping; None where no cell used it.
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
    ratios: Mapping[str, ClusterSums]
    cells: frozenset[int]
    error: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """Facts about a side beside its counts.

    Attributes:
        cost: dollars per end-to-end success over all trials, failed and repeated ones included; None if not known.
        cost_from: where the cost comes from, or why it is not known.
    """

    trials: int
    passed: int
    tokens: int
    cost: IntervalEstimate | None
    cost_from: str
    began: datetime | None
    ended: datetime | None
    concurrency: float | None
    saturated: int
    by_hand: int
    errors_retried: int
    simulated: bool
    local: bool
    hashes: tuple[str, ...]
    engines: tuple[str, ...]
    canonical: tuple[str, ...]
    upstreams: tuple[str, ...]
    run_ids: tuple[int, ...]
    config_ids: tuple[int, ...]
    distinct: int
    retries_by_scenario: Mapping[str, RetryCounts]

    @property
    def retries(self) -> RetryCounts:
        """Return the retry counts of all trials."""
        return sum(self.retries_by_scenario.values(), RetryCounts())

    @property
    def tokens_per_trial(self) -> int:
        """Return the tokens per trial, rounded; 0 without trials."""
        return round(self.tokens / self.trials) if self.trials else 0


def filter_side_trials(axes: Mapping[str, str], *, demo: bool) -> QuerySet[Trial]:
    """Return the finished trials of a side without controls.

    Simulated trials are included only in a demo or where runs are named.
    """
    found = Trial.objects.filter(run__deleted_at=None, cell__control=False, state=Trial.State.DONE)
    if not any(name in axes for name in RUN_AXES):
        found = found.filter(run__imported=False, run__simulated=demo)
    for name in RUN_AXES:
        if name in axes:
            found = found.filter(**{f"{name}_id__in": [int(part) for part in axes[name].split(",")]})
    if "stream" in axes:
        found = found.filter(config__stream=axes["stream"] == STREAMED)
    if "examples" in axes:
        found = found.filter(config__examples="" if axes["examples"] == NO_EXAMPLES else axes["examples"])
    return found.filter(**{column: axes[name] for name, column in AXIS_COLUMNS.items() if name in axes}).order_by()


def read_side(trials: QuerySet[Trial]) -> Side:
    """Return the facts about a side with five queries."""
    retries = count_retries(trials.filter(TRIED))
    about, paid = trials.filter(TRIED).aggregate(**_SIDE_AGGREGATES), add_costs(sum_costs(trials).values())
    return Side(
        trials=about["trials"],
        passed=about["passed"],
        tokens=(about["input"] or 0) + (about["output"] or 0),
        cost=estimate_cost_per_success(paid),
        cost_from=paid.source,
        began=about["began"],
        ended=about["ended"],
        concurrency=about["concurrency"],
        saturated=about["saturated"],
        by_hand=about["by_hand"],
        errors_retried=about["errors_retried"],
        simulated=bool(about["simulated"]),
        local="local" in (about["provider_kinds"] or ()),
        hashes=_sort_names(about["hashes"]),
        engines=_sort_names(about["engines"]),
        canonical=_sort_names(about["canonicals"]),
        upstreams=_sort_names(about["upstreams"]),
        run_ids=tuple(sorted(about["runs"] or ())),
        config_ids=tuple(sorted(about["configs"] or ())),
        distinct=about["distinct"],
        retries_by_scenario={name: retries.get(name, RetryCounts()) for name in _sort_names(about["scenarios"])},
    )


def _sort_names(names: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(sorted(name for name in names or () if name))


_SIDE_AGGREGATES = {
    "trials": Count("pk"), "passed": Count("pk", filter=Q(outcome="pass")),
    "input": Sum("input_tokens"), "output": Sum("output_tokens"),
    "began": Min("started_at"), "ended": Max("started_at"), "concurrency": Avg("concurrency"),
    "saturated": Count("pk", filter=Q(client_lag_ms__gt=SATURATED_LAG_MS)),
    "by_hand": Count("pk", filter=Q(added_by_hand=True)),
    "errors_retried": Count("pk", filter=Q(errors_retried__gt=0)), "simulated": BoolOr("run__simulated"),
    "provider_kinds": ArrayAgg("config__provider_kind", distinct=True),
    "hashes": ArrayAgg("config__policy_hash", distinct=True), "engines": ArrayAgg("engine_version", distinct=True),
    "canonicals": ArrayAgg("config__canonical", distinct=True), "upstreams": ArrayAgg("upstream", distinct=True),
    "scenarios": ArrayAgg("scenario", distinct=True),
    "runs": ArrayAgg("run_id", distinct=True), "configs": ArrayAgg("config_id", distinct=True),
    "distinct": Count("answer_hash", distinct=True, filter=ANSWERED & ~Q(answer_hash="")),
}  # fmt: skip


def read_stratum_counts(trials: QuerySet[Trial]) -> Iterable[StratumCounts]:
    """Yield the counts by stratum and instance, with one query."""
    named = {f"_{place}": value for place, value in enumerate(STRATUM_FIELDS.values())}
    drawn = When(instance_kind=DRAWN, then=F("instance_seed"))
    instance = Case(drawn, default=Value(None), output_field=BigIntegerField(null=True))
    keys = (*named, "scenario", "cell__scenario_group", "instance_kind", "instance")
    grouped = trials.filter(TRIED).annotate(**named, instance=instance).values(*keys)
    for row in grouped.annotate(**_COUNT_AGGREGATES, **_RATIO_AGGREGATES).order_by(*keys):
        yield StratumCounts(
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
            ratios={name: _build_clustered(row, name) for name in RATIO_COLUMNS},
            cells=frozenset(row["cells"]),
            error=row["error"],
        )


def _build_clustered(row: Mapping[str, Any], name: str) -> ClusterSums:
    sums = {part: row[f"{name}_{part}"] or 0 for part in ("k", "n", "kk", "kn", "nn")}
    return ClusterSums(m=row["tried"], **sums)


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
}


def _sum_product(first: str, second: str) -> Sum:
    return Sum(Cast(F(first), FloatField()) * Cast(F(second), FloatField()))


_RATIO_AGGREGATES = {
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
