"""Counts of trials by scenario, and sums over repeated instances for the effective sample size.

Repeats of a drawn instance are correlated. Repeats of the published wording count as independent.
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
PASSED = Q(outcome=Trial.Outcome.PASS)  # condition on trials, as is TRIED
TRIED = Q(outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL, Trial.Outcome.INFRA])
_TRIAL_COLUMNS = ("instance_kind", "scenario_version")  # columns of the trial, as opposed to its configuration
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
        passed: number of trials that passed.
        late: number of trials that passed after a user had retried them because of an error.
        answered: number of trials that passed, or failed other than by the trial deadline.
        tried: number of trials that passed, failed or had an infrastructure error.
    """

    config: int
    scenario: str
    passed: int
    late: int
    answered: int
    tried: int


@dataclass(frozen=True, slots=True)
class RepeatedSums:
    """Sums over drawn instances with several trials; each instance is a cluster.

    Attributes:
        end_to_end: sums for end-to-end success.
        answered: sums for answered success.
    """

    end_to_end: ClusterSums = NO_CLUSTERS
    answered: ClusterSums = NO_CLUSTERS

    def to_json(self) -> list[list[float]]:
        """Return `end_to_end` and `answered` as lists of the fields of ClusterSums."""
        return [list(astuple(self.end_to_end)), list(astuple(self.answered))]

    @classmethod
    def from_json(cls, document: list[list[float]]) -> "RepeatedSums":
        """Build the sums from the lists that `to_json` returned."""
        return cls(*(ClusterSums(int(instance_count), *sums) for instance_count, *sums in document))


RepeatedInstances = Mapping[tuple[Any, ...], RepeatedSums]  # by a key of `sum_repeated_instances`


def count_scenarios(trials: QuerySet[Trial]) -> Iterator[ScenarioCount]:
    """Yield the counts of each configuration and scenario, ordered by configuration id and scenario, with one query."""
    grouped = trials.filter(TRIED).order_by("config_id", "scenario").values_list("config_id", "scenario")
    for row in grouped.annotate(**_COUNTS):
        yield ScenarioCount(*row)


def sum_repeated_instances(trials: QuerySet[Trial], key: Sequence[str]) -> RepeatedInstances:
    """Return the sums over repeated instances, with one query.

    Args:
        trials: the trials to sum.
        key: names of the columns to group by: _TRIAL_COLUMNS, columns of configurations such as `model_name`, and
            columns of runs with a prefix, such as `run__imported`.

    Returns:
        The sums by a tuple: the values of these columns, in the order of `key`, and last the scenario. A group in which
        no instance was repeated is missing.
    """
    columns = [name if name in _TRIAL_COLUMNS else f"config__{name}" for name in key] + ["scenario"]
    drawn = trials.filter(TRIED, instance_kind=DRAWN).order_by().values(*columns, "instance_seed")
    sums_by_key: dict[tuple[Any, ...], RepeatedSums] = defaultdict(RepeatedSums)
    for row in drawn.annotate(**_COUNTS).filter(tried__gt=1):
        values = tuple(row[name] for name in columns)
        sums = sums_by_key[values]
        sums_by_key[values] = RepeatedSums(
            sums.end_to_end + _build_cluster(row["passed"] - row["late"], row["tried"]),
            sums.answered + _build_cluster(row["passed"], row["answered"]),
        )
    return sums_by_key


def _build_cluster(k: int, n: int) -> ClusterSums:
    return ClusterSums(1, k, n, k * k, k * n, n * n) if n else NO_CLUSTERS


def build_scenario_sample(
    k: int, n: int, repeated: ClusterSums, stopping: StoppingDesign = FIXED_STOPPING
) -> ScenarioSample:
    """Build the sample of a scenario, with effective counts if repeats of its instances are correlated.

    Args:
        k: number of successes, such as the trials that passed.
        n: number of all trials.
        repeated: sums over the repeated instances of these trials. Every other trial counts as an instance of its own.
        stopping: how the number of trials was determined.
    """
    single_n = max(0, n - int(repeated.n))
    single_k = min(single_n, max(0, k - int(repeated.k)))
    sums = ClusterSums(single_n, single_k, single_n, single_k, single_k, single_n) + repeated
    if sums.design_effect == 1:
        return ScenarioSample(k, n, stopping)
    return ScenarioSample(*sums.compute_effective_counts(), stopping, clustered=True)
