"""Figures of candidates that the sums of their cells lack: errors, repeated instances and price lists."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, QuerySet

from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cost import CostSums, build_cost_sums
from toolbench.lab.metrics.pools import SumRow
from toolbench.lab.metrics.repeated_instances import RepeatedInstances, RepeatedSums, sum_repeated_instances
from toolbench.lab.metrics.spending import find_price_origins
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Run, Trial

# columns of SumRow; rows with equal values in all of them belong to one candidate
CANDIDATE_KEY = (
    "provider_name", "provider_kind", "model_name", "profile", "strategy", "method", "examples", "tool_use_mode",
    "stream", "policy_hash", "instance_kind",
)  # fmt: skip


class InfraErrorCount(NamedTuple):
    """Number of trials of one configuration in one scenario that had an infrastructure error of one class."""

    scenario: str
    version: int
    failure_class: str
    trials: int


@dataclass(frozen=True, slots=True)
class CandidateContext:
    """Figures of the candidates of a scope that the sums of their cells lack.

    Attributes:
        infra_errors: infrastructure errors by configuration id.
        repeated: sums over repeated instances, by the values of CANDIDATE_KEY and the scenario; only for rows that do
            not store them.
        price_lists: origins of the prices, by provider name and model name.
    """

    infra_errors: Mapping[int, list[InfraErrorCount]]
    repeated: RepeatedInstances
    price_lists: Mapping[tuple[str, str], tuple[str, ...]]

    def count_infra_errors(self, rows: list[SumRow]) -> tuple[tuple[str, int], ...]:
        """Return (failure class, number of trials) of the infrastructure errors in these rows, the largest first."""
        scenario_versions = {(row["scenario"], row["scenario_version"]) for row in rows}
        trials_by_class: dict[str, int] = defaultdict(int)
        for config_id in {pk for row in rows for pk in row["config_ids"]}:
            for error in self.infra_errors.get(config_id, ()):
                if (error.scenario, error.version) in scenario_versions:
                    trials_by_class[error.failure_class] += error.trials
        return sort_counts(trials_by_class)

    def find_repeated(self, row: SumRow) -> RepeatedSums:
        """Return the sums over the repeated instances of a row; empty sums if no instance was repeated."""
        if row.get("repeated") is not None:
            return RepeatedSums.from_json(row["repeated"])
        return self.repeated.get((*(row[name] for name in CANDIDATE_KEY), row["scenario"]), RepeatedSums())

    def build_cost_sums(self, row: SumRow, tally: Tally) -> CostSums:
        """Return the sums of costs of a candidate.

        Args:
            row: any row of the candidate.
            tally: the counts of all rows of the candidate.
        """
        price_lists = self.price_lists.get((row["provider_name"], row["model_name"]), ())
        return build_cost_sums(tally, price_lists)


def sort_counts(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return (name, count) pairs, the largest count first, then by name."""
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def read_context(runs: QuerySet[Run], rows: list[SumRow]) -> CandidateContext:
    """Return the context of the candidates with at most three SQL queries.

    Args:
        runs: the runs in scope.
        rows: the sums of all candidates.
    """
    errors = Trial.objects.filter(outcome=Trial.Outcome.INFRA, run__in=runs).order_by()
    infra_errors: dict[int, list[InfraErrorCount]] = defaultdict(list)
    grouped = errors.values_list("config_id", "scenario", "scenario_version", "failure_class")
    for config_id, scenario, version, failure_class, trials in grouped.annotate(trials=Count("pk")):
        infra_errors[config_id].append(InfraErrorCount(scenario, version, failure_class or "infrastructure", trials))
    rows_without_sums = [row for row in rows if row["instance_kind"] == DRAWN and row.get("repeated") is None]
    cell_ids = [pk for row in rows_without_sums for pk in row["cell_ids"]]
    repeated = sum_repeated_instances(Trial.objects.filter(cell__in=cell_ids), CANDIDATE_KEY) if cell_ids else {}
    return CandidateContext(infra_errors, repeated, find_price_origins())
