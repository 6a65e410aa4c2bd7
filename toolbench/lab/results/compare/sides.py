"""A side of a comparison: the query for its trials, and sums over them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db.models import Aggregate, Count, F, FloatField, Max, Min, Q, QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.lab.metrics.cells import MAX_RELIABLE_LAG_MS
from toolbench.lab.metrics.cost import add_costs, estimate_cost_per_success, sum_cell_costs, sum_costs
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.metrics.retries import RetryCounts, build_retry_counts, count_retries
from toolbench.lab.metrics.tally import Tally, add_tallies, build_aggregates, build_tally
from toolbench.lab.models import Cell, Provider, Run, RunConfig, Trial
from toolbench.lab.results.compare.query import RUN_AXES, read_config_values
from toolbench.lab.results.compare.strata import HAS_ANSWER_HASH

TRIAL_COLUMNS = {"prompt": "prompt_version", "upstream": "upstream", "day": "started_at__date"}  # of trials, by axis
_CellTally = tuple[int, str, Tally]  # id of a configuration, a scenario, and the tally of their cells


class Median(Aggregate):
    """The median of a column; of an even number of values, the lower one of the middle two."""

    function = "percentile_disc"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


@dataclass(frozen=True, slots=True)
class Side:
    """Figures and settings of a side that the counts by stratum do not contain.

    All figures count only trials that passed, failed or had an infrastructure error. Tuples are sorted.

    Attributes:
        trials: number of these trials.
        tokens: number of input and output tokens, those of lost executions included.
        cost: dollars per end-to-end success; they include the cost of failed, retried and lost requests. None if a cost
            is unknown or there is no such success.
        cost_source: source of the cost, or the reason why it is unknown.
        end_to_end_successes: number of trials that passed and that no user had retried after an error.
        first_start: start of the first trial; None if no start is known, as in some imported runs.
        last_start: start of the last trial; None if no start is known.
        concurrency: number of trials in flight when a trial was claimed, as the median over the trials; None if it
            was not measured.
        overloaded_trials: number of trials measured while this machine was overloaded.
        manual_trials: number of trials that were added manually after results were seen.
        errors_retried: number of trials that a user retried after an error.
        simulated: whether any trial has a simulated model.
        local: whether any trial has a model that shares this machine.
        policy_hashes: hashes of the frozen settings.
        canonical_models: canonical names of the models.
        distinct_answers: number of different answers.
    """

    trials: int
    tokens: int
    cost: IntervalEstimate | None
    cost_source: str
    end_to_end_successes: int
    first_start: datetime | None
    last_start: datetime | None
    concurrency: float | None
    overloaded_trials: int
    manual_trials: int
    errors_retried: int
    simulated: bool
    local: bool
    policy_hashes: tuple[str, ...]
    engine_versions: tuple[str, ...]
    canonical_models: tuple[str, ...]
    upstreams: tuple[str, ...]
    run_ids: tuple[int, ...]
    config_ids: tuple[int, ...]
    distinct_answers: int
    retries_by_scenario: Mapping[str, RetryCounts]

    @property
    def retries(self) -> RetryCounts:
        """Return the retry counts of all trials."""
        return sum(self.retries_by_scenario.values(), RetryCounts())

    @property
    def tokens_per_trial(self) -> int:
        """Return the tokens per trial, rounded; 0 without trials."""
        return round(self.tokens / self.trials) if self.trials else 0


def filter_side_trials(
    axes: Mapping[str, str], *, demo: bool, chosen: ResultFilter = NO_FILTER, finished_only: bool = True
) -> QuerySet[Trial]:
    """Return the trials of a side, unordered and without controls.

    Args:
        axes: values of the side by axis. If they name runs or configurations, trials of imported, simulated and
            playground runs are included.
        demo: whether a side that names neither runs nor configurations has simulated trials, instead of real ones.
        chosen: filter for all sides.
        finished_only: False to include queued and running trials. Cancelled trials are included in both cases.
    """
    trials = Trial.objects.filter(chosen.condition, run__deleted_at=None, cell__control=False)
    if finished_only:
        trials = trials.filter(state=Trial.State.DONE)
    if not any(name in axes for name in RUN_AXES):
        trials = trials.filter(~Q(run__purpose=Run.PLAYGROUND), run__imported=False, run__simulated=demo)
    for name in RUN_AXES:
        if name in axes:
            ids = [int(part) for part in axes[name].split(",")]
            # The condition on trials implies the others, which let PostgreSQL read only cells and configurations of
            # these runs.
            trials = trials.filter(**{f"{name}_id__in": ids, f"cell__{name}_id__in": ids})
            trials = trials.filter(cell__config=F("config"))
            if name == "run":
                trials = trials.filter(config__run_id__in=ids)
    conditions: dict[str, Any] = {f"config__{column}": value for column, value in read_config_values(axes).items()}
    conditions |= {column: axes[name] for name, column in TRIAL_COLUMNS.items() if name in axes}
    return trials.filter(**conditions).order_by()


def read_side(trials: QuerySet[Trial], cell_ids: Collection[int] = ()) -> Side:
    """Return the figures of a side with at most seven SQL queries.

    Args:
        trials: the trials of the side.
        cell_ids: ids of the cells of the trials. Their counters are used if the side has all trials of the cells.
    """
    sums = trials.filter(TRIED).aggregate(**_SIDE_AGGREGATES)
    config_ids = tuple(sorted(sums["configs"] or ()))
    is_within_cells = set(sums["cells"] or ()) <= set(cell_ids)
    tallies = _tally_whole_cells(cell_ids, sums["trials"]) if is_within_cells else None
    if tallies is not None:
        retries = _count_retries_by_scenario(tallies)
        costs = sum_cell_costs([(config_id, tally) for config_id, _, tally in tallies])
    else:
        retries, costs = count_retries(trials.filter(TRIED)), add_costs(sum_costs(trials, config_ids).values())
    configs = list(RunConfig.objects.filter(pk__in=config_ids).only("provider_kind", "policy_hash", "canonical"))
    return Side(
        trials=sums["trials"],
        tokens=costs.tokens,
        cost=estimate_cost_per_success(costs),
        cost_source=costs.source,
        end_to_end_successes=costs.delivered,
        first_start=sums["first_start"],
        last_start=sums["last_start"],
        concurrency=sums["median_concurrency"],
        overloaded_trials=sums["overloaded"],
        manual_trials=sums["added_manually"],
        errors_retried=sums["retried"],
        simulated=bool(sums["simulated"]),
        local=any(config.provider_kind == Provider.Kind.LOCAL for config in configs),
        policy_hashes=_sort_names({config.policy_hash for config in configs}),
        engine_versions=_sort_names(sums["engine_versions"]),
        canonical_models=_sort_names({config.canonical for config in configs}),
        upstreams=_sort_names(sums["upstreams"]),
        run_ids=tuple(sorted(sums["runs"] or ())),
        config_ids=config_ids,
        distinct_answers=sums["distinct_answers"],
        retries_by_scenario={name: retries.get(name, RetryCounts()) for name in _sort_names(sums["scenarios"])},
    )


def _tally_whole_cells(cell_ids: Collection[int], tried: int) -> Sequence[_CellTally] | None:
    """Return tallies of the cells of a side if they can replace its trials, with one SQL query.

    Args:
        cell_ids: ids of the cells of the side.
        tried: number of the side's trials that passed, failed or had an infrastructure error.

    Returns:
        The tallies; None if the finished trials of the cells are not exactly these trials, or if counters of a cell are
        not current.
    """
    grouped = Cell.objects.filter(pk__in=cell_ids).order_by().values("config_id", "scenario")
    rows = list(grouped.annotate(**build_aggregates(), stale_cells=Count("pk", filter=Q(stale=True))))
    tallies = [(row["config_id"], row["scenario"], build_tally(row)) for row in rows]
    total = add_tallies(tally for *_, tally in tallies)
    is_outdated = total.uncomputed_cells or any(row["stale_cells"] for row in rows)
    return tallies if total.tried == total.ended == tried and not is_outdated else None


def _count_retries_by_scenario(tallies: Iterable[_CellTally]) -> Mapping[str, RetryCounts]:
    by_scenario: dict[str, list[Tally]] = defaultdict(list)
    for _, scenario, tally in tallies:
        by_scenario[scenario].append(tally)
    return {scenario: build_retry_counts(add_tallies(parts)) for scenario, parts in by_scenario.items()}


def _sort_names(names: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names without empty ones, sorted. `names` is None for an aggregate over no rows."""
    return tuple(sorted(name for name in names or () if name))


_SIDE_AGGREGATES = {
    "trials": Count("pk"),
    "first_start": Min("started_at"), "last_start": Max("started_at"), "median_concurrency": Median("concurrency"),
    "overloaded": Count("pk", filter=Q(client_lag_ms__gt=MAX_RELIABLE_LAG_MS)),
    "added_manually": Count("pk", filter=Q(added_by_hand=True)),
    "retried": Count("pk", filter=Q(errors_retried__gt=0)), "simulated": BoolOr("run__simulated"),
    "engine_versions": ArrayAgg("engine_version", distinct=True),
    "upstreams": ArrayAgg("upstream", distinct=True),
    "scenarios": ArrayAgg("scenario", distinct=True),
    "runs": ArrayAgg("run_id", distinct=True), "cells": ArrayAgg("cell_id", distinct=True),
    "configs": ArrayAgg("config_id", distinct=True),
    "distinct_answers": Count("answer_hash", distinct=True, filter=HAS_ANSWER_HASH),
}  # fmt: skip
