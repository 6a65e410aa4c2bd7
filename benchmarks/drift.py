"""How often the drift test of schedules errs, and how soon it finds a drop, in simulated schedules on the published
matrix's rates. `python -m benchmarks.drift`; `--schedules`, `--seed`, `--nights`."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks.sequential import list_published_rates
from toolbench.evals.statistics.drift import RunSample, find_drift

ERROR = 0.05
SERIES, SCENARIOS, TRIALS = 12, 5, 5  # a night: 25 trials of each configuration
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Detection:
    """A drop of one series: the share that was found, and the nights until then of half and of nine in ten."""

    found: float
    median: float
    late: float


def draw_nights(drawing: np.random.Generator, rates: Sequence[float], nights: int, spread: float = 0.0) -> list[Counts]:
    """Passes by night and scenario for each rate. The scenarios' rates lie up to 8 points around it; `spread` is the
    standard deviation of a night's own rate, in points."""
    found = []
    for rate in rates:
        scenarios = np.clip(rate + np.linspace(-0.08, 0.08, SCENARIOS), 0.0, 1.0)
        nightly = np.clip(scenarios + drawing.normal(0, spread / 100, (nights, 1)), 0.0, 1.0)
        found.append(drawing.binomial(TRIALS, nightly))
    return found


def build_samples(passed: Counts) -> tuple[RunSample, ...]:
    """One sample a night, with the trials of every scenario."""
    answered = tuple((f"s{number}", TRIALS) for number in range(SCENARIOS))
    return tuple(RunSample(int(night.sum()), answered) for night in passed)


def simulate_false_alarms(*, baseline: int, nights: int, schedules: int, seed: int, spread: float = 0.0) -> float:
    """The share of schedules of 12 series in which any series is ever marked, though nothing changed."""
    drawing, published, marked = np.random.default_rng(seed), list_published_rates(), 0
    for _ in range(schedules):
        rates = drawing.choice(published, SERIES).tolist()
        samples = map(build_samples, draw_nights(drawing, rates, baseline + nights, spread))
        marked += any(find_drift(runs[:baseline], runs[baseline:], ERROR / SERIES) is not None for runs in samples)
    return marked / schedules


def simulate_nightly_test(*, baseline: int, nights: int, schedules: int, seed: int, corrected: bool) -> float:
    """The same with an ordinary two-sided test of each night against the baseline."""
    drawing, published, marked = np.random.default_rng(seed), list_published_rates(), 0
    limit = norm.isf(ERROR / (SERIES if corrected else 1) / 2)
    for _ in range(schedules):
        totals = [
            night.sum(axis=1)
            for night in draw_nights(drawing, drawing.choice(published, SERIES).tolist(), baseline + nights)
        ]
        marked += any(_is_marked_by_night(total, baseline, float(limit)) for total in totals)
    return marked / schedules


def simulate_drop(before: float, after: float, *, baseline: int, nights: int, schedules: int, seed: int) -> Detection:
    """A drop on the first night since the baseline, in one of 12 series."""
    drawing, waits = np.random.default_rng(seed), []
    for _ in range(schedules):
        (pinned,), (later,) = draw_nights(drawing, [before], baseline), draw_nights(drawing, [after], nights)
        found = find_drift(build_samples(pinned), build_samples(later), ERROR / SERIES)
        waits.append(math.inf if found is None else found.detected_index + 1)
    ordered = sorted(waits)
    share = sum(wait < math.inf for wait in waits) / schedules
    return Detection(share, ordered[schedules // 2], ordered[schedules * 9 // 10])


def _is_marked_by_night(total: Counts, baseline: int, limit: float) -> bool:
    size = SCENARIOS * TRIALS
    pinned, later, pinned_size = total[:baseline].sum(), total[baseline:], baseline * size
    pooled = (pinned + later) / (pinned_size + size)
    error = np.sqrt(pooled * (1 - pooled) * (1 / pinned_size + 1 / size))
    difference = np.abs(later / size - pinned / pinned_size)
    return bool(np.any(difference > limit * error))


def _print_report(schedules: int, seed: int, nights: int) -> None:
    size = SCENARIOS * TRIALS
    print(
        f"{schedules:,} schedules, {SERIES} series, {size} trials a night, {nights} nights, error {ERROR}, seed {seed}"
    )
    for baseline in (1, 3, 7):
        share = simulate_false_alarms(baseline=baseline, nights=nights, schedules=schedules, seed=seed)
        print(f"nothing changed, baseline of {baseline}: {share:.2%} of schedules have a false alarm")
    for spread in (2.0, 5.0):
        share = simulate_false_alarms(baseline=3, nights=nights, schedules=schedules, seed=seed, spread=spread)
        print(f"rates vary by {spread:g} points a night, baseline of 3: {share:.2%} of schedules are marked")
    for corrected in (False, True):
        share = simulate_nightly_test(baseline=3, nights=nights, schedules=schedules, seed=seed, corrected=corrected)
        print(f"ordinary test every night{', corrected for the series' if corrected else ''}: {share:.2%}")
    for before, after in ((0.9, 0.8), (0.9, 0.7), (0.9, 0.5), (0.9, 0.1), (0.75, 0.55)):
        for baseline in (1, 3, 7):
            drop = simulate_drop(before, after, baseline=baseline, nights=nights, schedules=schedules, seed=seed)
            print(
                f"{before:.0%} to {after:.0%}, baseline of {baseline}: found {drop.found:.1%}, "
                f"half after {drop.median:g} nights, nine in ten after {drop.late:g}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--nights", type=int, default=90)
    given = parser.parse_args()
    _print_report(given.schedules, given.seed, given.nights)
