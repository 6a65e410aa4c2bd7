"""What the candidates of a decision need beside the sums of their cells: errors, repeated instances and prices."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, QuerySet

from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cost import CostSums
from toolbench.lab.metrics.pools import SumRow
from toolbench.lab.metrics.repeated_instances import RepeatedInstances, RepeatedSums, find_repeated_instances
from toolbench.lab.metrics.spending import find_price_names
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Run, Trial

CANDIDATE_KEY = (
    "provider_name", "provider_kind", "model_name", "profile", "strategy", "method", "examples", "tool_use_mode",
    "stream", "policy_hash", "instance_kind",
)  # fmt: skip


class LostTrials(NamedTuple):
    """Infrastructure errors of one configuration in one scenario."""

    scenario: str
    version: int
    failure_class: str
    trials: int


@dataclass(frozen=True, slots=True)
class CandidateContext:
    """What a candidate needs beside the sums of its cells.

    Attributes:
        lost: infrastructure errors by configuration id.
        repeated: sums over repeated instances by CANDIDATE_KEY and scenario, of lines without stored ones.
        price_names: names of price lists by provider and model.
    """

    lost: Mapping[int, list[LostTrials]]
    repeated: RepeatedInstances
    price_names: Mapping[tuple[str, str], tuple[str, ...]]

    def count_lost(self, lines: list[SumRow]) -> tuple[tuple[str, int], ...]:
        """Return the infrastructure errors of these lines by failure class, most first."""
        counted = {(line["scenario"], line["scenario_version"]) for line in lines}
        total: dict[str, int] = defaultdict(int)
        for config_id in {pk for line in lines for pk in line["config_ids"]}:
            for lost in self.lost.get(config_id, ()):
                if (lost.scenario, lost.version) in counted:
                    total[lost.failure_class] += lost.trials
        return sort_counts(total)

    def find_repeated(self, line: SumRow) -> RepeatedSums:
        """Return the sums over the repeated instances of a line."""
        if line.get("repeated") is not None:
            return RepeatedSums.from_json(line["repeated"])
        return self.repeated.get((*(line[name] for name in CANDIDATE_KEY), line["scenario"]), RepeatedSums())

    def build_cost_sums(self, line: SumRow, tally: Tally) -> CostSums:
        """Return the sums of costs of a candidate, with the names of the price lists that took part."""
        names = self.price_names.get((line["provider_name"], line["model_name"]), ())
        return CostSums(
            tried=tally.tried,
            reported=tally.costs_reported,
            known=tally.costs_known,
            dollars=tally.known_dollars,
            squared_dollars=tally.squared_dollars,
            delivered_dollars=tally.delivered_dollars,
            delivered=tally.passed - tally.late_passes,
            price_lists=names if tally.costs_reported < tally.costs_known else (),
        )


def sort_counts(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return names with their counts, the largest first."""
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def read_context(runs: QuerySet[Run], lines: list[SumRow]) -> CandidateContext:
    """Read the context of the candidates with these lines, with three queries at most."""
    errors = Trial.objects.filter(outcome=Trial.Outcome.INFRA, run__in=runs).order_by()
    lost: dict[int, list[LostTrials]] = defaultdict(list)
    grouped = errors.values_list("config_id", "scenario", "scenario_version", "failure_class")
    for config_id, scenario, version, name, count in grouped.annotate(count=Count("pk")):
        lost[config_id].append(LostTrials(scenario, version, name or "infrastructure", count))
    open_lines = [line for line in lines if line["instance_kind"] == DRAWN and line.get("repeated") is None]
    drawn = [pk for line in open_lines for pk in line["cell_ids"]]
    repeated = find_repeated_instances(Trial.objects.filter(cell__in=drawn), CANDIDATE_KEY) if drawn else {}
    return CandidateContext(lost, repeated, find_price_names())
