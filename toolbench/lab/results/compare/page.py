"""All that the compare page shows of two measured sides."""

from dataclasses import dataclass

from toolbench.lab.models import Trial
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.diagnosis import Diagnosis, diagnose
from toolbench.lab.results.compare.noise_floor import NoiseFloor, noise_floors
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.seed_support import seed_remark
from toolbench.lab.results.compare.sides import IDENTITY
from toolbench.lab.results.compare.statistics import Key, instances_by_fate

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
    first, second = (_trials(page, side, wanted, failed=(side == 1) == (fate == "regressed")) for side in (0, 1))
    return tuple(
        Changed(fate, str(key[0]), instance, first[*key, instance], second[*key, instance])
        for key, instance in wanted
        if (*key, instance) in first and (*key, instance) in second
    )


def _trials(page: Comparison, side: int, wanted: list[tuple[Key, int]], *, failed: bool) -> dict[Key, int]:
    """Return a trial of each instance by its stratum and number, one that failed where the side did."""
    found = page.trials[side].filter(instance_seed__in=[instance for _, instance in wanted])
    outcomes = [Trial.Outcome.FAIL, Trial.Outcome.INFRA] if failed else [Trial.Outcome.PASS]
    stratum = [value for name, value in IDENTITY.items() if name not in page.counts.differing]
    rows = found.filter(outcome__in=outcomes).values_list("scenario", *stratum, "instance_seed", "pk")
    return {tuple(key): pk for *key, pk in rows}
