"""Coverage of intervals and error rates of tests, as measured: `python -m benchmarks.coverage`.

Outcomes are drawn by the random generator that decides the faults of personas, at their published rates; no request is
sent. The exact coverage of an interval for a number of trials and a rate is a sum over all outcomes; the measured one
has to be within three Monte-Carlo standard errors of it. Two equal personas may differ significantly in at most 5 % of
the comparisons, within the same tolerance. The exit code is 1 if a figure is outside its tolerance.
"""

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

from toolbench.evals.statistics.differences import ALPHA, Stratum, compute_difference
from toolbench.evals.statistics.pairs import compute_paired_difference, compute_sign_p
from toolbench.evals.statistics.shares import compute_exact_interval, compute_wilson_interval
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.seeded_random import build_random

PERSONAS = ("reliable-70", "reliable-90", "reliable-95")
TRIALS = (10, 40, 100)
DEFAULT_RUNS, DEFAULT_COMPARISONS = 2_000, 10_000
TOLERANCE_STANDARD_ERRORS = 3
INTERVALS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "Wilson": compute_wilson_interval,
    "exact": compute_exact_interval,
}
TRIALS_PER_SIDE, SCENARIOS = 40, 4


@dataclass(frozen=True)
class MeasuredShare:
    """Measured share, and what it has to be.

    Attributes:
        what: name of the figure.
        runs: number of simulated runs.
        exact: the share that is expected, or its upper bound.
        at_most: whether `exact` is an upper bound.
    """

    what: str
    runs: int
    share: float
    exact: float
    at_most: bool = False

    @property
    def error(self) -> float:
        """Monte-Carlo standard error."""
        return math.sqrt(self.exact * (1 - self.exact) / self.runs)

    @property
    def holds(self) -> bool:
        """Whether the share is as expected, within the tolerance."""
        beyond = self.share - self.exact
        return (beyond if self.at_most else abs(beyond)) <= TOLERANCE_STANDARD_ERRORS * self.error + 1e-12

    def __str__(self) -> str:
        tolerance = TOLERANCE_STANDARD_ERRORS * self.error
        bound = f"{'at most' if self.at_most else 'exactly'} {self.exact:.4f} ± {tolerance:.4f}"
        return f"| {self.what} | {self.runs:,} | {self.share:.4f} | {bound} | {'yes' if self.holds else 'NO'} |"


def iter_outcomes(slug: str, purpose: str) -> Iterator[bool]:
    """Yield whether trials of a persona pass, without end: each seed is one trial."""
    persona = load_personas()[slug]
    seed = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:6], "big")
    while True:
        yield build_random(seed, persona.slug, "drift").random() >= persona.rate
        seed += 1


def iter_pass_counts(slug: str, purpose: str, n: int) -> Iterator[int]:
    """Yield how many of `n` trials pass, without end."""
    drawn = iter_outcomes(slug, purpose)
    while True:
        yield sum(islice(drawn, n))


def get_true_rate(slug: str) -> float:
    """Return the published rate of a persona in scenario happy_path, in strategy raw."""
    rates = load_personas()[slug].true_rates
    return float(rates["happy_path" if "happy_path" in rates else "tools"]["raw"])


def measure_coverages(runs: int) -> Iterator[MeasuredShare]:
    """Yield the coverage of each interval of one rate, for each persona and number of trials."""
    for slug in PERSONAS:
        rate = get_true_rate(slug)
        for n in TRIALS:
            drawn = list(islice(iter_pass_counts(slug, f"cover {n}", n), runs))
            for name, interval in INTERVALS.items():
                covers = [low <= rate <= high for low, high in (interval(k, n) for k in range(n + 1))]
                exact = float(stats.binom.pmf(np.arange(n + 1), n, rate) @ np.array(covers, dtype=float))
                yield MeasuredShare(f"{name}, {slug}, n = {n}", runs, sum(covers[k] for k in drawn) / runs, exact)


def measure_difference_coverages(runs: int) -> Iterator[MeasuredShare]:
    """Yield the coverage of the interval of two personas' difference, at 40 trials per side."""
    for first, second in (("reliable-70", "reliable-95"), ("reliable-90", "reliable-90")):
        apart = get_true_rate(second) - get_true_rate(first)
        one, two = (
            iter_pass_counts(first, "first", TRIALS_PER_SIDE),
            iter_pass_counts(second, "second", TRIALS_PER_SIDE),
        )
        pairs = list(zip(islice(one, runs), islice(two, runs), strict=True))
        covered = (
            sum(_covers_difference((Stratum(k1, TRIALS_PER_SIDE, k2, TRIALS_PER_SIDE),), apart) for k1, k2 in pairs)
            / runs
        )
        exact = _compute_exact_coverage(get_true_rate(first), get_true_rate(second))
        yield MeasuredShare(f"difference, {first} and {second}, n = {TRIALS_PER_SIDE}", runs, covered, exact)


@cache
def _covers_difference(strata: tuple[Stratum, ...], apart: float, comparisons: int = 1) -> bool:
    alone = compute_difference(strata)
    found = alone.with_comparisons(comparisons) if alone else None
    return found is not None and found.low - 1e-12 <= apart <= found.high + 1e-12


def _compute_exact_coverage(first: float, second: float) -> float:
    one, two = (stats.binom.pmf(np.arange(TRIALS_PER_SIDE + 1), TRIALS_PER_SIDE, rate) for rate in (first, second))
    places = range(TRIALS_PER_SIDE + 1)
    likely = ((i, j, one[i] * two[j]) for i in places for j in places if one[i] * two[j] > 1e-12)
    return float(
        sum(
            p
            for i, j, p in likely
            if _covers_difference((Stratum(i, TRIALS_PER_SIDE, j, TRIALS_PER_SIDE),), second - first)
        )
    )


def measure_false_differences(comparisons: int) -> Iterator[MeasuredShare]:
    """Yield how often two equal personas differ significantly, by each test of the page Compare."""
    each = TRIALS_PER_SIDE // SCENARIOS
    for slug in PERSONAS:
        one, two = (iter_pass_counts(slug, side, each) for side in ("left", "right"))
        whole = strata = 0
        for _ in range(comparisons):
            first, second = list(islice(one, SCENARIOS)), list(islice(two, SCENARIOS))
            whole += _shows_difference((Stratum(sum(first), TRIALS_PER_SIDE, sum(second), TRIALS_PER_SIDE),))
            strata += _shows_difference(
                tuple(sorted((Stratum(a, each, b, each) for a, b in zip(first, second, strict=True)), key=str))
            )
        yield MeasuredShare(
            f"one scenario, {slug} twice, n = {TRIALS_PER_SIDE}", comparisons, whole / comparisons, ALPHA, at_most=True
        )
        name = f"{SCENARIOS} scenarios, {slug} twice, n = {each} each"
        yield MeasuredShare(name, comparisons, strata / comparisons, ALPHA, at_most=True)
        yield _measure_pairs(slug, comparisons)


@cache
def _shows_difference(strata: tuple[Stratum, ...]) -> bool:
    found = compute_difference(strata)
    return found is not None and found.is_significant


def _measure_pairs(slug: str, comparisons: int) -> MeasuredShare:
    one, two = iter_outcomes(slug, "left pair"), iter_outcomes(slug, "right pair")
    claims = 0
    for _ in range(comparisons):
        pairs = list(zip(islice(one, TRIALS_PER_SIDE), islice(two, TRIALS_PER_SIDE), strict=True))
        claims += compute_sign_p(sum(b > a for a, b in pairs), sum(a > b for a, b in pairs)) <= ALPHA
    return MeasuredShare(
        f"{TRIALS_PER_SIDE} pairs, {slug} twice", comparisons, claims / comparisons, ALPHA, at_most=True
    )


def measure_pair_coverages(runs: int) -> Iterator[MeasuredShare]:
    """Yield how often the interval of pairs does not cover: at most 5 %, since it is exact."""
    first, second = "reliable-70", "reliable-95"
    one, two = iter_outcomes(first, "first pair"), iter_outcomes(second, "second pair")
    apart, missed = get_true_rate(second) - get_true_rate(first), 0
    for _ in range(runs):
        found = compute_paired_difference(
            [
                (float(a), float(b))
                for a, b in zip(islice(one, TRIALS_PER_SIDE), islice(two, TRIALS_PER_SIDE), strict=True)
            ]
        )
        missed += found is None or not found.low <= apart <= found.high
    yield MeasuredShare(
        f"not covered: {TRIALS_PER_SIDE} pairs, {first} and {second}", runs, missed / runs, 0.05, at_most=True
    )


def measure_family_coverages(runs: int) -> Iterator[MeasuredShare]:
    """Yield how often at least one of several simultaneous intervals does not cover its difference."""
    for comparisons in (4, 12):
        sides = [
            iter_pass_counts(PERSONAS[place % 3], f"family {comparisons} {place}", TRIALS_PER_SIDE)
            for place in range(comparisons + 1)
        ]
        rates = [get_true_rate(PERSONAS[place % 3]) for place in range(comparisons + 1)]
        missed = 0
        for drawn in islice(zip(*sides, strict=True), runs):
            missed += not all(
                _covers_difference(
                    (Stratum(drawn[place], TRIALS_PER_SIDE, drawn[place + 1], TRIALS_PER_SIDE),),
                    rates[place + 1] - rates[place],
                    comparisons,
                )
                for place in range(comparisons)
            )
        name = f"not all covered: {comparisons} simultaneous differences, n = {TRIALS_PER_SIDE}"
        yield MeasuredShare(name, runs, missed / runs, ALPHA, at_most=True)


def measure(runs: int, comparisons: int) -> Iterator[MeasuredShare]:
    """Yield every figure."""
    yield from measure_coverages(runs)
    yield from measure_difference_coverages(runs)
    yield from measure_pair_coverages(runs)
    yield from measure_family_coverages(runs)
    yield from measure_false_differences(comparisons)


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="of each interval (default 2000)")
    parser.add_argument("--comparisons", type=int, default=DEFAULT_COMPARISONS, help="of each test (default 10000)")
    options = parser.parse_args(None if arguments is None else list(arguments))
    print("| figure | runs | measured | expected | holds |\n|---|---|---|---|---|")
    failed = 0
    for line in measure(options.runs, options.comparisons):
        print(line, flush=True)
        failed += not line.holds
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
