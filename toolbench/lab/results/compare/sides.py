"""One side of a comparison: its trials and the facts about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db.models import Avg, Count, Max, Min, Q, QuerySet, Sum

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.lab.metrics.cells import MAX_RELIABLE_LAG_MS
from toolbench.lab.metrics.cost import add_costs, estimate_cost_per_success, sum_costs
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.metrics.retries import RetryCounts, count_retries
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.compare.query import RUN_AXES
from toolbench.lab.results.trial_list.filter import NO_EXAMPLES, STREAMED

AXIS_COLUMNS = {
    "provider": "config__provider_name", "model": "config__model_name", "canonical": "config__canonical",
    "profile": "config__profile", "strategy": "config__strategy", "method": "config__method",
    "prompt": "prompt_version", "upstream": "upstream", "day": "started_at__date",
}  # fmt: skip


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


def filter_side_trials(
    axes: Mapping[str, str], *, demo: bool, chosen: ResultFilter = NO_FILTER, is_finished: bool = True
) -> QuerySet[Trial]:
    """Return the trials of a side without controls, only finished ones unless `is_finished` is False.

    Simulated trials are included only in a demo or where runs are named.
    """
    found = Trial.objects.filter(chosen.condition, run__deleted_at=None, cell__control=False)
    if is_finished:
        found = found.filter(state=Trial.State.DONE)
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
    "saturated": Count("pk", filter=Q(client_lag_ms__gt=MAX_RELIABLE_LAG_MS)),
    "by_hand": Count("pk", filter=Q(added_by_hand=True)),
    "errors_retried": Count("pk", filter=Q(errors_retried__gt=0)), "simulated": BoolOr("run__simulated"),
    "provider_kinds": ArrayAgg("config__provider_kind", distinct=True),
    "hashes": ArrayAgg("config__policy_hash", distinct=True), "engines": ArrayAgg("engine_version", distinct=True),
    "canonicals": ArrayAgg("config__canonical", distinct=True), "upstreams": ArrayAgg("upstream", distinct=True),
    "scenarios": ArrayAgg("scenario", distinct=True),
    "runs": ArrayAgg("run_id", distinct=True), "configs": ArrayAgg("config_id", distinct=True),
    "distinct": Count("answer_hash", distinct=True, filter=ANSWERED & ~Q(answer_hash="")),
}  # fmt: skip
