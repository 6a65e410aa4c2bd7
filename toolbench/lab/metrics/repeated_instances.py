"""Counts of trials by scenario, and their effective sample size where drawn instances were repeated.

The published wording is one instance; its repeats count as independent.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.intervals import FIXED_STOPPING, ScenarioSample, StoppingDesign
from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cells import ANSWERED
from toolbench.lab.models import Trial

NO_CLUSTERS = ClusterSums()
PASSED = Q(outcome=Trial.Outcome.PASS)
TRIED = Q(outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA])
_TRIAL_COLUMNS = ("instance_kind", "scenario_version")  # columns of a trial itself; the others are its configuration's
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
class RepeatedSums:
    """Sums over drawn instances that were repeated: of end-to-end success, and of success given an answer."""

    delivery: ClusterSums = NO_CLUSTERS
    given: ClusterSums = NO_CLUSTERS

    def to_json(self) -> list[list[float]]:
        """Return both sums as lists of numbers."""
        return [list(astuple(self.delivery)), list(astuple(self.given))]

    @classmethod
    def from_json(cls, document: list[list[float]]) -> "RepeatedSums":
        """Return the sums that `to_json` wrote."""
        return cls(*(ClusterSums(int(m), *sums) for m, *sums in document))


RepeatedInstances = Mapping[tuple[Any, ...], RepeatedSums]


def count_scenarios(trials: QuerySet[Trial]) -> Iterator[ScenarioCount]:
    """Yield the counts of each configuration and scenario, with one query."""
    grouped = trials.filter(TRIED).order_by("config_id", "scenario").values_list("config_id", "scenario")
    for config, _, *counts in grouped.annotate(**_COUNTS):
        yield ScenarioCount(config, *counts)


def find_repeated_instances(trials: QuerySet[Trial], key: Sequence[str]) -> RepeatedInstances:
    """Return the sums over repeated instances by `key`, columns of a trial or its configuration, and scenario.

    One query, which returns only instances that were repeated.
    """
    columns = [name if name in _TRIAL_COLUMNS else f"config__{name}" for name in key] + ["scenario"]
    drawn = trials.filter(TRIED, instance_kind=DRAWN).order_by().values(*columns, "instance_seed")
    found: dict[tuple[Any, ...], RepeatedSums] = defaultdict(RepeatedSums)
    for row in drawn.annotate(**_COUNTS).filter(tried__gt=1):
        values = tuple(row[name] for name in columns)
        sums = found[values]
        found[values] = RepeatedSums(
            sums.delivery + _build_cluster(row["passed"] - row["late"], row["tried"]),
            sums.given + _build_cluster(row["passed"], row["answered"]),
        )
    return found


def _build_cluster(k: int, n: int) -> ClusterSums:
    return ClusterSums(1, k, n, k * k, k * n, n * n) if n else NO_CLUSTERS


def build_scenario_sample(
    k: int, n: int, repeated: ClusterSums, stopping: StoppingDesign = FIXED_STOPPING
) -> ScenarioSample:
    """Build the sample of `k` in `n` trials, of which `repeated` sums repeated instances.

    Every other trial has an instance of its own.
    """
    alone_n = max(0, n - int(repeated.n))
    alone_k = min(alone_n, max(0, k - int(repeated.k)))
    whole = ClusterSums(alone_n, alone_k, alone_n, alone_k, alone_k, alone_n) + repeated
    if whole.design_effect == 1:
        return ScenarioSample(k, n, stopping)
    return ScenarioSample(*whole.compute_effective_counts(), stopping, clustered=True)
