"""Errors of the drift test of schedules, and how soon it finds a drop: `python -m benchmarks.drift`.

Schedules are simulated with the rates of the published matrix; `--schedules`, `--seed`, `--nights`.
"""

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
SERIES, SCENARIOS, TRIALS = 12, 5, 5  # each night has 25 trials of each configuration
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Detection:
    """Detection of a drop in the simulated schedules.

    Attributes:
        found: share of the schedules in which it was found.
        median: nights until it was found in half of the schedules; infinite if it was found in fewer.
        late: nights until it was found in nine of ten; infinite if it was found in fewer.
    """

    found: float
    median: float
    late: float


def draw_nights(drawing: np.random.Generator, rates: Sequence[float], nights: int, spread: float = 0.0) -> list[Counts]:
    """Return passes by night and scenario for each rate.

    Args:
        drawing: random generator.
        rates: mean rate of each series; the rates of its scenarios are at most 8 points above or below it.
        nights: number of nights.
        spread: standard deviation of the rate between nights, in percentage points.
    """
    passes = []
    for rate in rates:
        scenarios = np.clip(rate + np.linspace(-0.08, 0.08, SCENARIOS), 0.0, 1.0)
        nightly = np.clip(scenarios + drawing.normal(0, spread / 100, (nights, 1)), 0.0, 1.0)
        passes.append(drawing.binomial(TRIALS, nightly))
    return passes


def build_samples(passed: Counts) -> tuple[RunSample, ...]:
    """Return one sample per night, with the trials of every scenario."""
    answered = tuple((f"s{number}", TRIALS) for number in range(SCENARIOS))
    return tuple(RunSample(int(night.sum()), answered) for night in passed)


def simulate_false_alarms(*, baseline: int, nights: int, schedules: int, seed: int, spread: float = 0.0) -> float:
    """Return the share of schedules in which one of 12 series is marked although no rate changed."""
    drawing, published, marked = np.random.default_rng(seed), list_published_rates(), 0
    for _ in range(schedules):
        rates = drawing.choice(published, SERIES).tolist()
        samples = map(build_samples, draw_nights(drawing, rates, baseline + nights, spread))
        marked += any(find_drift(runs[:baseline], runs[baseline:], ERROR / SERIES) is not None for runs in samples)
    return marked / schedules


def simulate_nightly_test(*, baseline: int, nights: int, schedules: int, seed: int, corrected: bool) -> float:
    """Return this share for a two-sided test of each night against the baseline.

    `corrected` means that the test is corrected for the number of series, but not for the number of nights.
    """
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
    """Simulate a drop in one of 12 series, on the first night after the baseline."""
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
        print(f"no change, baseline of {baseline}: {share:.2%} of schedules have a false alarm")
    for spread in (2.0, 5.0):
        share = simulate_false_alarms(baseline=3, nights=nights, schedules=schedules, seed=seed, spread=spread)
        print(f"rates vary by {spread:g} points between nights, baseline of 3: {share:.2%} of schedules are marked")
    for corrected in (False, True):
        share = simulate_nightly_test(baseline=3, nights=nights, schedules=schedules, seed=seed, corrected=corrected)
        print(f"two-sided test every night{', corrected for the series' if corrected else ''}: {share:.2%}")
    for before, after in ((0.9, 0.8), (0.9, 0.7), (0.9, 0.5), (0.9, 0.1), (0.75, 0.55)):
        for baseline in (1, 3, 7):
            drop = simulate_drop(before, after, baseline=baseline, nights=nights, schedules=schedules, seed=seed)
            print(
                f"{before:.0%} to {after:.0%}, baseline of {baseline}: found {drop.found:.1%}, "
                f"half after {drop.median:g} nights, nine in ten after {drop.late:g}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000, help="of each row (default 1000)")
    parser.add_argument("--seed", type=int, default=11, help="default 11")
    parser.add_argument("--nights", type=int, default=90, help="after the baseline (default 90)")
    options = parser.parse_args()
    _print_report(options.schedules, options.seed, options.nights)
