"""Numbers of failed trials by cause, for the cards that open at the cells of the grid."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from django.db.models import Count

from toolbench.evals.causes.table import load_causes
from toolbench.lab.models import Trial
from toolbench.lab.scenarios.catalogue import ScenarioKey

# Number of failed trials by (configuration id, (scenario, version)) and cause code.
CauseCounts = Mapping[tuple[int, ScenarioKey], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class FrequentCause:
    """The most frequent cause of failed trials.

    Attributes:
        sentence: the cause in words; its code if the table of causes does not contain it.
        count: number of trials with this cause.
    """

    code: str
    sentence: str
    count: int


def count_causes(config_ids: Sequence[int], slugs: Sequence[str]) -> CauseCounts:
    """Count failed trials by configuration, scenario version and cause, with one SQL query.

    Trials without a cause are not counted.

    Args:
        config_ids: primary keys of the configurations.
        slugs: slugs of the scenarios, which are counted in every version.
    """
    failed = Trial.objects.filter(config_id__in=config_ids, scenario__in=slugs).exclude(cause="").order_by()
    grouped = failed.values_list("config_id", "scenario", "scenario_version", "cause").annotate(count=Count("pk"))
    counts: dict[tuple[int, ScenarioKey], dict[str, int]] = {}
    for config_id, scenario, version, cause, count in grouped:
        counts.setdefault((config_id, (scenario, version)), {})[cause] = count
    return counts


def find_frequent_cause(
    counts: CauseCounts, config_ids: Iterable[int], scenarios: Sequence[ScenarioKey]
) -> FrequentCause | None:
    """Return the most frequent cause in these configurations and scenarios; None if no trial has a cause.

    Of equally frequent causes, the first code in alphabetical order is returned.
    """
    if not counts:
        return None
    totals: dict[str, int] = defaultdict(int)
    for key in product(config_ids, scenarios):
        for code, count in counts.get(key, {}).items():
            totals[code] += count
    if not totals:
        return None
    code, count = min(totals.items(), key=lambda item: (-item[1], item[0]))
    cause = load_causes().get(code)
    return FrequentCause(code, cause.sentence if cause else code, count)
