"""Counts of trials by scenario, and their effective sample size where drawn instances were repeated.

The published wording is one instance; its repeats count as independent.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.intervals import FIXED_STOPPING, ScenarioSample, StoppingDesign
from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cells import ANSWERED
from toolbench.lab.models import Trial

PASSED = Q(outcome=Trial.Outcome.PASS)
TRIED = Q(outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA])
_TRIAL_COLUMNS = ("instance_kind",)  # columns of a trial itself; the others are its configuration's
_COUNTS = {
    "passed": Count("pk", filter=PASSED),
    "late": Count("pk", filter=PASSED & Q(errors_retried__gt=0)),
    "answered": Count("pk", filter=ANSWERED),
    "tried": Count("pk"),
}


@dataclass(frozen=True, slots=True)
class ScenarioCount:
    """The trials of one configuration in one scenario."""

    config: int
    passed: int
    late: int
    answered: int
    tried: int


@dataclass(frozen=True, slots=True)
class RepeatedInstance:
    """Counts of one drawn instance that was repeated: k of n, delivered and given an answer."""

    delivery: tuple[int, int]
    given: tuple[int, int]


RepeatedInstances = Mapping[tuple[Any, ...], Sequence[RepeatedInstance]]


def count_scenarios(trials: QuerySet[Trial]) -> Iterator[ScenarioCount]:
    """Yield the counts of each configuration and scenario, with one query."""
    grouped = trials.filter(TRIED).order_by("config_id", "scenario").values_list("config_id", "scenario")
    for config, _, *counts in grouped.annotate(**_COUNTS):
        yield ScenarioCount(config, *counts)


def find_repeated_instances(trials: QuerySet[Trial], key: Sequence[str]) -> RepeatedInstances:
    """Return repeated instances by `key`, which are columns of a configuration, and scenario.

    One query, which returns only instances that were repeated.
    """
    columns = [name if name in _TRIAL_COLUMNS else f"config__{name}" for name in key] + ["scenario"]
    drawn = trials.filter(TRIED, instance_kind=DRAWN).order_by().values(*columns, "instance_seed")
    found: dict[tuple[Any, ...], list[RepeatedInstance]] = defaultdict(list)
    for row in drawn.annotate(**_COUNTS).filter(tried__gt=1):
        repeated = RepeatedInstance((row["passed"] - row["late"], row["tried"]), (row["passed"], row["answered"]))
        found[tuple(row[name] for name in columns)].append(repeated)
    return found


def build_scenario_sample(
    k: int, n: int, again: Iterable[tuple[int, int]], stopping: StoppingDesign = FIXED_STOPPING
) -> ScenarioSample:
    """Build the sample of `k` in `n` trials, of which `again` counts repeated instances.

    Every other trial has an instance of its own.
    """
    clusters = [pair for pair in again if pair[1]]
    alone_n = max(0, n - sum(of for _, of in clusters))
    alone_k = min(alone_n, max(0, k - sum(cluster for cluster, _ in clusters)))
    whole = ClusterSums(alone_n, alone_k, alone_n, alone_k, alone_k, alone_n)
    for cluster, of in clusters:
        whole += ClusterSums(1, cluster, of, cluster * cluster, cluster * of, of * of)
    if whole.design_effect == 1:
        return ScenarioSample(k, n, stopping)
    return ScenarioSample(*whole.compute_effective_counts(), stopping, clustered=True)
