"""Counts of trials by scenario, and sums over repeated instances for the effective sample size.

Only drawn instances are treated as repeated. Repeats of the published wording count as independent.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.intervals import FIXED_STOPPING, ScenarioSample, StoppingDesign
from toolbench.evals.types import DRAWN
from toolbench.lab.models import Trial
from toolbench.lab.models.trials import ANSWERED

NO_CLUSTERS = ClusterSums()
PASSED = Q(outcome=Trial.Outcome.PASS)
TRIED = Q(outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA])
_TRIAL_COLUMNS = ("instance_kind", "scenario_version")  # columns of the trial; all others are of its configuration
_COUNTS = {
    "passed": Count("pk", filter=PASSED),
    "late": Count("pk", filter=PASSED & Q(errors_retried__gt=0)),
    "answered": Count("pk", filter=ANSWERED),
    "tried": Count("pk"),
}


@dataclass(frozen=True, slots=True)
class ScenarioCount:
    """Counts of the trials of one configuration in one scenario.

    Attributes:
        config: id of the configuration.
        passed: trials that passed.
        late: trials that passed after a user had retried them because of an error.
        answered: trials that passed, or failed other than by the trial deadline.
        tried: trials that passed, failed or had an infrastructure error.
    """

    config: int
    scenario: str
    passed: int
    late: int
    answered: int
    tried: int


@dataclass(frozen=True, slots=True)
class RepeatedSums:
    """Sums over the drawn instances that were repeated.

    Attributes:
        delivery: sums for end-to-end success.
        given: sums for answered success.
    """

    delivery: ClusterSums = NO_CLUSTERS
    given: ClusterSums = NO_CLUSTERS

    def to_json(self) -> list[list[float]]:
        """Return `delivery` and `given` as lists of numbers, for `from_json`."""
        return [list(astuple(self.delivery)), list(astuple(self.given))]

    @classmethod
    def from_json(cls, document: list[list[float]]) -> "RepeatedSums":
        """Return the sums that `to_json` wrote."""
        return cls(*(ClusterSums(int(m), *sums) for m, *sums in document))


RepeatedInstances = Mapping[tuple[Any, ...], RepeatedSums]


def count_scenarios(trials: QuerySet[Trial]) -> Iterator[ScenarioCount]:
    """Yield the counts of each configuration and scenario, ordered by both, with one query."""
    grouped = trials.filter(TRIED).order_by("config_id", "scenario").values_list("config_id", "scenario")
    for row in grouped.annotate(**_COUNTS):
        yield ScenarioCount(*row)


def sum_repeated_instances(trials: QuerySet[Trial], key: Sequence[str]) -> RepeatedInstances:
    """Return the sums over repeated instances, with one query.

    Args:
        trials: the trials to sum.
        key: columns to group by: _TRIAL_COLUMNS, columns of configurations, and columns of runs after `run__`.

    Returns:
        The sums by a tuple of the values of `key`, in its order, and the scenario.
    """
    columns = [name if name in _TRIAL_COLUMNS else f"config__{name}" for name in key] + ["scenario"]
    drawn = trials.filter(TRIED, instance_kind=DRAWN).order_by().values(*columns, "instance_seed")
    sums_by_key: dict[tuple[Any, ...], RepeatedSums] = defaultdict(RepeatedSums)
    for row in drawn.annotate(**_COUNTS).filter(tried__gt=1):
        values = tuple(row[name] for name in columns)
        sums = sums_by_key[values]
        sums_by_key[values] = RepeatedSums(
            sums.delivery + _build_cluster(row["passed"] - row["late"], row["tried"]),
            sums.given + _build_cluster(row["passed"], row["answered"]),
        )
    return sums_by_key


def _build_cluster(k: int, n: int) -> ClusterSums:
    return ClusterSums(1, k, n, k * k, k * n, n * n) if n else NO_CLUSTERS


def build_scenario_sample(
    k: int, n: int, repeated: ClusterSums, stopping: StoppingDesign = FIXED_STOPPING
) -> ScenarioSample:
    """Build the sample of a scenario, with its effective counts if trials are clustered.

    Args:
        k: number of trials that count, such as those that passed.
        n: number of all trials.
        repeated: sums over the repeated instances among them; every other trial has a different instance.
        stopping: how the number of trials was decided.
    """
    single_n = max(0, n - int(repeated.n))
    single_k = min(single_n, max(0, k - int(repeated.k)))
    sums = ClusterSums(single_n, single_k, single_n, single_k, single_k, single_n) + repeated
    if sums.design_effect == 1:
        return ScenarioSample(k, n, stopping)
    return ScenarioSample(*sums.compute_effective_counts(), stopping, clustered=True)
