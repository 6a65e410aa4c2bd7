"""Whether intervals cover and tests err as often as they say: `python -m benchmarks.coverage`.

Outcomes are drawn from the source of chance by which a persona drifts, at the rates that it publishes; nothing is sent.
The exact coverage of an interval at some n and rate is summed over all outcomes; what is measured has to lie within
three Monte-Carlo standard errors of it. Equal personas may be called different in at most 5 of 100 comparisons, within
the same tolerance."""

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
from scipy import stats

from toolbench.evals.statistics.differences import ALPHA, Stratum, difference
from toolbench.evals.statistics.pairs import paired_difference, sign_p
from toolbench.evals.statistics.shares import clopper_pearson, wilson
from toolbench.providers.simulated.personas import all_personas
from toolbench.providers.simulated.seeded_random import chance

PERSONAS = ("reliable-70", "reliable-90", "reliable-95")
TRIALS = (10, 40, 100)
RUNS, COMPARISONS = 2_000, 10_000
TOLERANCE = 3  # standard errors
INTERVALS: dict[str, Callable[[int, int], tuple[float, float]]] = {"Wilson": wilson, "exact": clopper_pearson}
A_SIDE, SCENARIOS = 40, 4


@dataclass(frozen=True)
class Measured:
    """A share that was measured over `runs`, and what it has to be: equal to `exact`, or at most that."""

    what: str
    runs: int
    share: float
    exact: float
    at_most: bool = False

    @property
    def error(self) -> float:
        return math.sqrt(self.exact * (1 - self.exact) / self.runs)

    @property
    def holds(self) -> bool:
        beyond = self.share - self.exact
        return (beyond if self.at_most else abs(beyond)) <= TOLERANCE * self.error + 1e-12

    def __str__(self) -> str:
        bound = f"{'at most' if self.at_most else 'exactly'} {self.exact:.4f} ± {TOLERANCE * self.error:.4f}"
        return f"| {self.what} | {self.runs:,} | {self.share:.4f} | {bound} | {'yes' if self.holds else 'NO'} |"


def outcomes(slug: str, purpose: str) -> Iterator[bool]:
    """Passes and failures of one persona, for ever: every seed is one trial."""
    persona = all_personas()[slug]
    seed = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:6], "big")
    while True:
        yield chance(seed, persona.slug, "drift").random() >= persona.rate
        seed += 1


def passes(slug: str, purpose: str, n: int) -> Iterator[int]:
    """How many of `n` trials passed, run after run."""
    drawn = outcomes(slug, purpose)
    while True:
        yield sum(islice(drawn, n))


def true_rate(slug: str) -> float:
    return float(
        all_personas()[slug].true_rates["happy_path" if "happy_path" in all_personas()[slug].true_rates else "tools"][
            "raw"
        ]
    )


def coverages(runs: int) -> Iterator[Measured]:
    for slug in PERSONAS:
        rate = true_rate(slug)
        for n in TRIALS:
            drawn = list(islice(passes(slug, f"cover {n}", n), runs))
            for name, interval in INTERVALS.items():
                covers = [low <= rate <= high for low, high in (interval(k, n) for k in range(n + 1))]
                exact = float(stats.binom.pmf(np.arange(n + 1), n, rate) @ np.array(covers, dtype=float))
                yield Measured(f"{name}, {slug}, n = {n}", runs, sum(covers[k] for k in drawn) / runs, exact)


def difference_coverages(runs: int) -> Iterator[Measured]:
    """The interval of two personas' difference, at 40 trials a side."""
    for first, second in (("reliable-70", "reliable-95"), ("reliable-90", "reliable-90")):
        apart = true_rate(second) - true_rate(first)
        one, two = passes(first, "first", A_SIDE), passes(second, "second", A_SIDE)
        pairs = list(zip(islice(one, runs), islice(two, runs), strict=True))
        covered = sum(_covers((Stratum(k1, A_SIDE, k2, A_SIDE),), apart) for k1, k2 in pairs) / runs
        exact = _exact_difference_coverage(true_rate(first), true_rate(second))
        yield Measured(f"difference, {first} and {second}, n = {A_SIDE}", runs, covered, exact)


@cache
def _covers(strata: tuple[Stratum, ...], apart: float, comparisons: int = 1) -> bool:
    alone = difference(strata)
    found = alone.among(comparisons) if alone else None
    return found is not None and found.low - 1e-12 <= apart <= found.high + 1e-12


def _exact_difference_coverage(first: float, second: float) -> float:
    one, two = (stats.binom.pmf(np.arange(A_SIDE + 1), A_SIDE, rate) for rate in (first, second))
    places = range(A_SIDE + 1)
    likely = ((i, j, one[i] * two[j]) for i in places for j in places if one[i] * two[j] > 1e-12)
    return float(sum(p for i, j, p in likely if _covers((Stratum(i, A_SIDE, j, A_SIDE),), second - first)))


def false_differences(comparisons: int) -> Iterator[Measured]:
    """How often equal personas are called different, by each of the page's tests."""
    each = A_SIDE // SCENARIOS
    for slug in PERSONAS:
        one, two = (passes(slug, side, each) for side in ("left", "right"))
        whole = strata = 0
        for _ in range(comparisons):
            first, second = list(islice(one, SCENARIOS)), list(islice(two, SCENARIOS))
            whole += _claims((Stratum(sum(first), A_SIDE, sum(second), A_SIDE),))
            strata += _claims(
                tuple(sorted((Stratum(a, each, b, each) for a, b in zip(first, second, strict=True)), key=str))
            )
        yield Measured(
            f"one scenario, {slug} twice, n = {A_SIDE}", comparisons, whole / comparisons, ALPHA, at_most=True
        )
        name = f"{SCENARIOS} scenarios, {slug} twice, n = {each} each"
        yield Measured(name, comparisons, strata / comparisons, ALPHA, at_most=True)
        yield _paired(slug, comparisons)


@cache
def _claims(strata: tuple[Stratum, ...]) -> bool:
    found = difference(strata)
    return found is not None and found.shown


def _paired(slug: str, comparisons: int) -> Measured:
    one, two = outcomes(slug, "left pair"), outcomes(slug, "right pair")
    claims = 0
    for _ in range(comparisons):
        pairs = list(zip(islice(one, A_SIDE), islice(two, A_SIDE), strict=True))
        claims += sign_p(sum(b > a for a, b in pairs), sum(a > b for a, b in pairs)) <= ALPHA
    return Measured(f"{A_SIDE} pairs, {slug} twice", comparisons, claims / comparisons, ALPHA, at_most=True)


def pair_coverages(runs: int) -> Iterator[Measured]:
    """The interval of pairs is judged against 95 %: it is exact, so it covers more."""
    first, second = "reliable-70", "reliable-95"
    one, two = outcomes(first, "first pair"), outcomes(second, "second pair")
    apart, missed = true_rate(second) - true_rate(first), 0
    for _ in range(runs):
        found = paired_difference(
            [(float(a), float(b)) for a, b in zip(islice(one, A_SIDE), islice(two, A_SIDE), strict=True)]
        )
        missed += found is None or not found.low <= apart <= found.high
    yield Measured(f"not covered: {A_SIDE} pairs, {first} and {second}", runs, missed / runs, 0.05, at_most=True)


def family_coverages(runs: int) -> Iterator[Measured]:
    """How often at least one of the simultaneous intervals of a family leaves out its difference."""
    for comparisons in (4, 12):
        sides = [
            passes(PERSONAS[place % 3], f"family {comparisons} {place}", A_SIDE) for place in range(comparisons + 1)
        ]
        rates = [true_rate(PERSONAS[place % 3]) for place in range(comparisons + 1)]
        missed = 0
        for drawn in islice(zip(*sides, strict=True), runs):
            missed += not all(
                _covers(
                    (Stratum(drawn[place], A_SIDE, drawn[place + 1], A_SIDE),),
                    rates[place + 1] - rates[place],
                    comparisons,
                )
                for place in range(comparisons)
            )
        name = f"not all covered: {comparisons} simultaneous differences, n = {A_SIDE}"
        yield Measured(name, runs, missed / runs, ALPHA, at_most=True)


def measure(runs: int, comparisons: int) -> Iterator[Measured]:
    yield from coverages(runs)
    yield from difference_coverages(runs)
    yield from pair_coverages(runs)
    yield from family_coverages(runs)
    yield from false_differences(comparisons)


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--comparisons", type=int, default=COMPARISONS)
    given = parser.parse_args(None if arguments is None else list(arguments))
    print("| what | runs | measured | should be | holds |\n|---|---|---|---|---|")
    failed = 0
    for line in measure(given.runs, given.comparisons):
        print(line, flush=True)
        failed += not line.holds
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
