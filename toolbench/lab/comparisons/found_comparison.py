"""All that the compare page shows of two measured sides."""

from dataclasses import dataclass

from toolbench.lab.comparisons.compare import Comparison, get_comparison
from toolbench.lab.comparisons.compare_counts import instances_by_fate
from toolbench.lab.comparisons.compare_diagnosis import Diagnosis, diagnose
from toolbench.lab.comparisons.compare_query import SIDES, CompareQuery
from toolbench.lab.comparisons.compare_seeds import seed_remark
from toolbench.lab.comparisons.compare_sides import trials_of
from toolbench.lab.comparisons.noise_floor import NoiseFloor, noise_floors
from toolbench.lab.models import Trial

SHOWN = 10  # instances of a fate


@dataclass(frozen=True, slots=True)
class Changed:
    """An instance that came out differently, with one trial of it on each side."""

    fate: str
    scenario: str
    instance: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class FoundComparison:
    page: Comparison
    diagnosis: Diagnosis | None
    floors: tuple[NoiseFloor, ...]
    changed: tuple[Changed, ...]
    seeds: str


def find_comparison(query: CompareQuery) -> FoundComparison:
    page = get_comparison(query)
    if not page.comparable:
        return FoundComparison(page, None, (), (), "")
    changed = _changed(page, "regressed") + _changed(page, "fixed")
    return FoundComparison(page, diagnose(page), noise_floors(page), changed, seed_remark(page))


def _changed(page: Comparison, fate: str) -> tuple[Changed, ...]:
    """Two queries where there are any."""
    wanted = instances_by_fate(page.counts, fate, SHOWN)
    if not wanted:
        return ()
    places = [(str(key[0]), instance) for key, instance in wanted]
    first, second = (_trials(page, name, places, failed=(name == "b") == (fate == "regressed")) for name in SIDES)
    return tuple(
        Changed(fate, scenario, instance, first[scenario, instance], second[scenario, instance])
        for scenario, instance in places
        if (scenario, instance) in first and (scenario, instance) in second
    )


def _trials(page: Comparison, side: str, places: list[tuple[str, int]], *, failed: bool) -> dict[tuple[str, int], int]:
    """A trial of each instance, one that failed where the side did."""
    found = trials_of(page.query.side(side), demo=page.query.demo)
    found = found.filter(instance_seed__in=[instance for _, instance in places], instance_kind=page.counts.kind)
    outcomes = [Trial.Outcome.FAIL, Trial.Outcome.INFRA] if failed else [Trial.Outcome.PASS]
    rows = found.filter(outcome__in=outcomes).values_list("scenario", "instance_seed", "pk")
    return {(scenario, instance): pk for scenario, instance, pk in rows}
