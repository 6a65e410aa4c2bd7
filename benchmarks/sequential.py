"""Errors of the rules of sequential stopping, and the trials that they save.

`python -m benchmarks.sequential` simulates 10,000 runs of each rate of the published matrix; `--runs`, `--seed`,
`--most`. The exit code is 1 if a rule errs more often than stated.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolbench.evals.published import load_snapshots
from toolbench.evals.statistics import compute_wilson_interval
from toolbench.evals.statistics.sequential import compute_anytime_interval
from toolbench.evals.statistics.stopping import (
    ANALYSIS_STEP_TRIALS,
    FIRST_ANALYSIS_TRIALS,
    CellCount,
    StoppingRule,
    decide_cells,
)

Counts = NDArray[np.int64]
UNDECIDED = ""
RATES_NEAR_TARGET = (0.85, 0.875, 0.9, 0.925)


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Result of simulated runs of one cell, or of the cells of one scenario.

    Attributes:
        runs: number of simulated runs.
        wrong: share of runs with a wrong decision.
        left_out: share of runs in which the interval at the end does not cover the rate of a cell.
        decided: share of runs in which every cell is decided.
        trials: mean number of trials per cell.
    """

    runs: int
    wrong: float
    left_out: float
    decided: float
    trials: float

    def within(self, stated: float) -> bool:
        """Return whether both errors are at most the stated one, within three Monte-Carlo standard errors."""
        return max(self.wrong, self.left_out) <= stated + 3 * math.sqrt(stated * (1 - stated) / self.runs)


def simulate_cell(rate: float, until: StoppingRule, *, most: int, runs: int, seed: int) -> SimulationResult:
    """Simulate a cell with sequential stopping.

    Args:
        rate: true rate of the cell.
        until: the rule.
        most: largest number of trials.
        runs: number of simulated runs.
        seed: seed of the random generator.
    """
    drawing = np.random.default_rng(seed)
    passed, tried, decisions = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.full(runs, UNDECIDED, dtype="<U8")
    for n, more in _iter_analyses(most):
        is_open = decisions == UNDECIDED
        passed[is_open] += drawing.binomial(more, rate, int(is_open.sum()))
        tried[is_open] = n
        by_count = np.array([decide_cells(until, [CellCount(k, n, until.error)])[0] for k in range(n + 1)])
        decisions[is_open] = by_count[passed[is_open]]
    target = until.target / 100
    wrong = (decisions == "above") & (rate < target) | (decisions == "below") & (rate >= target)
    left_out = _find_excluded_rates(rate, passed, tried, until.error)
    return SimulationResult(
        runs, _compute_mean(wrong), _compute_mean(left_out), _compute_mean(decisions != UNDECIDED), float(tried.mean())
    )


def simulate_cells(rates: Sequence[float], until: StoppingRule, *, most: int, runs: int, seed: int) -> SimulationResult:
    """Simulate the cells of one scenario with sequential stopping until one is the best.

    A decision is wrong if a cell with the highest rate is beaten.

    Args:
        rates: true rate of each cell.
        until: the rule.
        most: largest number of trials of a cell.
        runs: number of simulated runs.
        seed: seed of the random generator.
    """
    drawing = np.random.default_rng(seed)
    error, highest = until.compute_cell_error(len(rates)), max(rates)
    wrong, left_out, decided, trials = 0, 0, 0, 0
    for _ in range(runs):
        cells = [CellCount(0, 0, error)] * len(rates)
        decisions = [UNDECIDED] * len(rates)
        for _, more in _iter_analyses(most):
            cells = [
                CellCount(cell.k + int(drawing.binomial(more, rate)), cell.n + more, error)
                if decision == UNDECIDED
                else cell
                for cell, rate, decision in zip(cells, rates, decisions, strict=True)
            ]
            decisions = [decision or new for decision, new in zip(decisions, decide_cells(until, cells), strict=True)]
            if UNDECIDED not in decisions:
                break
        is_best_beaten = any(
            decision == "beaten" and rate == highest for decision, rate in zip(decisions, rates, strict=True)
        )
        wrong += is_best_beaten
        left_out += any(
            not low <= rate <= high
            for rate, (low, high) in zip(rates, (compute_anytime_interval(c.k, c.n, error) for c in cells), strict=True)
        )
        decided += UNDECIDED not in decisions
        trials += sum(cell.n for cell in cells)
    return SimulationResult(runs, wrong / runs, left_out / runs, decided / runs, trials / runs / len(rates))


def list_published_rates() -> list[float]:
    """Return the rate of each row with tools of the published matrix."""
    return [cell.tool[0] / cell.tool[1] for cell in load_snapshots()[0].cells if not cell.not_applicable]


def _iter_analyses(most: int) -> Iterator[tuple[int, int]]:
    """Yield the number of trials of a cell at each interim analysis, and how many of them are new."""
    n = min(FIRST_ANALYSIS_TRIALS, most)
    yield n, n
    while n < most:
        more = min(ANALYSIS_STEP_TRIALS, most - n)
        n += more
        yield n, more


def _find_excluded_rates(rate: float, passed: Counts, tried: Counts, error: float) -> NDArray[np.bool_]:
    intervals = {
        (k, n): compute_anytime_interval(k, n, error) for k, n in set(zip(passed.tolist(), tried.tolist(), strict=True))
    }
    shown = [intervals[pair] for pair in zip(passed.tolist(), tried.tolist(), strict=True)]
    return np.array([not low <= rate <= high for low, high in shown])


def _compute_mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean())


def _simulate_peeking(rate: float, target: float, *, most: int, runs: int, seed: int) -> float:
    """Return the error of the threshold rule with the Wilson interval in place of the anytime-valid one."""
    drawing = np.random.default_rng(seed)
    passed, wrong, is_open = np.zeros(runs, np.int64), np.zeros(runs, bool), np.ones(runs, bool)
    for n, more in _iter_analyses(most):
        passed[is_open] += drawing.binomial(more, rate, int(is_open.sum()))
        low, high = np.array([compute_wilson_interval(k, n) for k in range(n + 1)]).T
        above, below = low[passed] >= target, high[passed] < target
        wrong |= is_open & (above if rate < target else below)
        is_open &= ~(above | below)
    return _compute_mean(wrong)


def _simulate_fixed(rate: float, target: float, n: int, *, runs: int, seed: int) -> float:
    """Return how often the Wilson interval of a fixed number of trials decides."""
    low, high = np.array([compute_wilson_interval(k, n) for k in range(n + 1)]).T
    passed = np.random.default_rng(seed).binomial(n, rate, runs)
    return _compute_mean((low[passed] >= target) | (high[passed] < target))


def _print_report(runs: int, seed: int, most: int) -> bool:
    """Print the figures of every rule; return whether none errs more often than stated."""
    rates = list_published_rates()
    print(
        f"{len(rates)} rows of the published matrix, {runs:,} runs of each, at most {most} trials per cell, seed {seed}"
    )
    is_within = True
    for until in (
        StoppingRule("threshold"),
        StoppingRule("threshold", error=0.1),
        StoppingRule("width"),
        StoppingRule("width", width=30),
    ):
        rows = [simulate_cell(rate, until, most=most, runs=runs, seed=seed + at) for at, rate in enumerate(rates)]
        is_within &= _print_rows(str(until), until.error, rows, most)
    target = StoppingRule().target / 100
    for rate in RATES_NEAR_TARGET:
        row = simulate_cell(rate, StoppingRule(), most=most, runs=runs, seed=seed)
        peeked = _simulate_peeking(rate, target, most=most, runs=runs, seed=seed)
        print(f"  rate {rate:.1%} against 90 %: wrong {row.wrong:.4f}; with the Wilson interval {peeked:.4f}")
    fixed = sum(_simulate_fixed(rate, target, most, runs=runs, seed=seed) for rate in rates) / len(rates)
    print(f"  {most} trials in every cell and the Wilson interval decide {fixed:.1%}")
    for race in ([0.9] * 2, [0.9] * 5, [0.7, 0.95], [0.8, 0.9, 0.9, 0.95, 0.7]):
        row = simulate_cells(race, StoppingRule("best"), most=most, runs=runs, seed=seed)
        is_within &= _print_rows(f"best of {race}", StoppingRule("best").error, [row], most)
    return is_within


def _print_rows(title: str, stated: float, rows: Sequence[SimulationResult], most: int) -> bool:
    """Print the worst figures of a rule; return whether it errs at most as often as stated."""
    wrong, left_out = max(row.wrong for row in rows), max(row.left_out for row in rows)
    decided = sum(row.decided for row in rows) / len(rows)
    trials = sum(row.trials for row in rows) / len(rows)
    is_within = all(row.within(stated) for row in rows)
    print(
        f"{title}: stated error {stated:g}; wrong at most {wrong:.4f}, rate left out at most {left_out:.4f}: "
        f"{'within it' if is_within else 'ABOVE IT'}; decided {decided:.1%}, {trials:.1f} trials per cell, "
        f"saved {1 - trials / most:.1%}"
    )
    return is_within


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sequential", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="simulated runs of each rate (default 10000)")
    parser.add_argument("--seed", type=int, default=4, help="default 4")
    parser.add_argument("--most", type=int, default=200, help="largest number of trials of a cell (default 200)")
    options = parser.parse_args(None if arguments is None else list(arguments))
    return 0 if _print_report(options.runs, options.seed, options.most) else 1


if __name__ == "__main__":
    sys.exit(main())
