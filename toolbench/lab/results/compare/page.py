"""Everything that the compare page shows of two measured sides."""

from dataclasses import dataclass

from toolbench.lab.models import Trial
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.diagnosis import Diagnosis, diagnose
from toolbench.lab.results.compare.noise_floor import NoiseMeasurement, measure_noise
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.seed_support import describe_seed_support
from toolbench.lab.results.compare.sides import STRATUM_FIELDS
from toolbench.lab.results.compare.statistics import StratumKey, find_instances_by_change

MAX_CHANGED_INSTANCES = 10  # instances of a fate


@dataclass(frozen=True, slots=True)
class ChangedInstance:
    """An instance whose outcome changed, with one trial of it on each side.

    Attributes:
        fate: "regressed" or "fixed".
        first: primary key of the trial on the first side.
        second: primary key of the trial on the second side.
    """

    fate: str
    scenario: str
    instance: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The comparison and what belongs to it.

    Attributes:
        diagnosis: None unless one canonical model is compared at two providers.
        seeds: text about the sampling seed; empty if nothing is paired.
    """

    page: Comparison
    diagnosis: Diagnosis | None
    noise_measurements: tuple[NoiseMeasurement, ...]
    changed: tuple[ChangedInstance, ...]
    seeds: str


def get_compare_page(query: CompareQuery) -> ComparePage:
    """Return the compare page of the query."""
    page = get_comparison(query)
    if not page.comparable:
        return ComparePage(page, None, (), (), "")
    changed = _list_changed_instances(page, "regressed") + _list_changed_instances(page, "fixed")
    return ComparePage(page, diagnose(page), measure_noise(page), changed, describe_seed_support(page))


def _list_changed_instances(page: Comparison, fate: str) -> tuple[ChangedInstance, ...]:
    """Return the instances with this change. Two queries if there are any."""
    keys = find_instances_by_change(page.counts, fate, MAX_CHANGED_INSTANCES)
    if not keys:
        return ()
    first, second = (_find_trials(page, side, keys, failed=(side == 1) == (fate == "regressed")) for side in (0, 1))
    return tuple(
        ChangedInstance(fate, str(key[0]), instance, first[*key, instance], second[*key, instance])
        for key, instance in keys
        if (*key, instance) in first and (*key, instance) in second
    )


def _find_trials(
    page: Comparison, side: int, keys: list[tuple[StratumKey, int]], *, failed: bool
) -> dict[StratumKey, int]:
    """Return a trial of each instance by its stratum and number: a failed one if `failed`, else a passed one."""
    found = page.trials[side].filter(instance_seed__in=[instance for _, instance in keys])
    outcomes = [Trial.Outcome.FAIL, Trial.Outcome.INFRA] if failed else [Trial.Outcome.PASS]
    stratum = [value for name, value in STRATUM_FIELDS.items() if name not in page.counts.differing]
    rows = found.filter(outcome__in=outcomes).values_list("scenario", *stratum, "instance_seed", "pk")
    return {tuple(key): pk for *key, pk in rows}
