"""How often the rules of "until decided" err, and what they save, on the published matrix's rates: 10,000 simulated
runs of each. `python -m benchmarks.sequential`; `--runs`, `--seed`, `--most`."""

import argparse
import math
from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Simulated runs of one cell, or of one scenario's cells: shares of runs, and trials per cell on average."""

    runs: int
    wrong: float  # something was decided that is not so
    left_out: float  # the interval shown at the end leaves out the rate (of some cell)
    decided: float
    trials: float

    def within(self, stated: float) -> bool:
        """Whether both errors are at most the stated one, within three Monte-Carlo standard errors."""
        return max(self.wrong, self.left_out) <= stated + 3 * math.sqrt(stated * (1 - stated) / self.runs)


def simulate_cell(rate: float, until: StoppingRule, *, most: int, runs: int, seed: int) -> SimulationResult:
    """One cell with this true rate, looked at as the lab does it."""
    drawing = np.random.default_rng(seed)
    passed, tried, words = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.full(runs, UNDECIDED, dtype="<U8")
    for n, more in _iter_analyses(most):
        going = words == UNDECIDED
        passed[going] += drawing.binomial(more, rate, int(going.sum()))
        tried[going] = n
        said = np.array([decide_cells(until, [CellCount(k, n, until.error)])[0] for k in range(n + 1)])
        words[going] = said[passed[going]]
    target = until.target / 100
    wrong = (words == "above") & (rate < target) | (words == "below") & (rate >= target)
    left_out = _find_excluded_rates(rate, passed, tried, until.error)
    return SimulationResult(
        runs, _compute_mean(wrong), _compute_mean(left_out), _compute_mean(words != UNDECIDED), float(tried.mean())
    )


def simulate_cells(rates: Sequence[float], until: StoppingRule, *, most: int, runs: int, seed: int) -> SimulationResult:
    """Cells of one scenario with these true rates, until one is the best. Wrong: one of the best was beaten, or one
    that is not alone at the top was called the best."""
    drawing = np.random.default_rng(seed)
    error, highest = until.compute_cell_error(len(rates)), max(rates)
    wrong, left_out, decided, trials = 0, 0, 0, 0
    for _ in range(runs):
        cells = [CellCount(0, 0, error)] * len(rates)
        words = [UNDECIDED] * len(rates)
        for _, more in _iter_analyses(most):
            cells = [
                CellCount(cell.k + int(drawing.binomial(more, rate)), cell.n + more, error)
                if word == UNDECIDED
                else cell
                for cell, rate, word in zip(cells, rates, words, strict=True)
            ]
            words = [word or new for word, new in zip(words, decide_cells(until, cells), strict=True)]
            if UNDECIDED not in words:
                break
        wrong += any(word == "beaten" and rate == highest for word, rate in zip(words, rates, strict=True))
        left_out += any(
            not low <= rate <= high
            for rate, (low, high) in zip(rates, (compute_anytime_interval(c.k, c.n, error) for c in cells), strict=True)
        )
        decided += UNDECIDED not in words
        trials += sum(cell.n for cell in cells)
    return SimulationResult(runs, wrong / runs, left_out / runs, decided / runs, trials / runs / len(rates))


def list_published_rates() -> list[float]:
    """Of the published matrix's rows with tools, one for each."""
    return [cell.tool[0] / cell.tool[1] for cell in load_snapshots()[0].cells if not cell.not_applicable]


def _iter_analyses(most: int) -> Iterator[tuple[int, int]]:
    """Trials of a cell at each look, and how many of them are new."""
    n = min(FIRST_ANALYSIS_TRIALS, most)
    yield n, n
    while n < most:
        more = min(ANALYSIS_STEP_TRIALS, most - n)
        n += more
        yield n, more


def _find_excluded_rates(rate: float, passed: Counts, tried: Counts, error: float) -> NDArray[np.bool_]:
    ends = {
        (k, n): compute_anytime_interval(k, n, error) for k, n in set(zip(passed.tolist(), tried.tolist(), strict=True))
    }
    shown = [ends[pair] for pair in zip(passed.tolist(), tried.tolist(), strict=True)]
    return np.array([not low <= rate <= high for low, high in shown])


def _compute_mean(found: NDArray[np.bool_]) -> float:
    return float(found.mean())


def _simulate_peeking(rate: float, target: float, *, most: int, runs: int, seed: int) -> float:
    """The error of the same threshold rule with the ordinary interval in place of the always-valid one."""
    drawing = np.random.default_rng(seed)
    passed, wrong, going = np.zeros(runs, np.int64), np.zeros(runs, bool), np.ones(runs, bool)
    for n, more in _iter_analyses(most):
        passed[going] += drawing.binomial(more, rate, int(going.sum()))
        low, high = np.array([compute_wilson_interval(k, n) for k in range(n + 1)]).T
        above, below = low[passed] >= target, high[passed] < target
        wrong |= going & (above if rate < target else below)
        going &= ~(above | below)
    return _compute_mean(wrong)


def _simulate_fixed(rate: float, target: float, n: int, *, runs: int, seed: int) -> float:
    """How often a fixed number of trials decides by the ordinary interval."""
    low, high = np.array([compute_wilson_interval(k, n) for k in range(n + 1)]).T
    passed = np.random.default_rng(seed).binomial(n, rate, runs)
    return _compute_mean((low[passed] >= target) | (high[passed] < target))


def _print_report(runs: int, seed: int, most: int) -> None:
    rates = list_published_rates()
    print(
        f"{len(rates)} rows of the published matrix, {runs:,} runs of each, at most {most} trials a cell, seed {seed}"
    )
    for until in (
        StoppingRule("threshold"),
        StoppingRule("threshold", error=0.1),
        StoppingRule("width"),
        StoppingRule("width", width=30),
    ):
        rows = [simulate_cell(rate, until, most=most, runs=runs, seed=seed + at) for at, rate in enumerate(rates)]
        _print_rows(str(until), until.error, rows, most)
    target = StoppingRule().target / 100
    close = (0.85, 0.875, 0.9, 0.925)
    for rate in close:
        row = simulate_cell(rate, StoppingRule(), most=most, runs=runs, seed=seed)
        peeked = _simulate_peeking(rate, target, most=most, runs=runs, seed=seed)
        print(f"  rate {rate:.1%} against 90 %: wrong {row.wrong:.4f}; the ordinary interval so watched {peeked:.4f}")
    fixed = sum(_simulate_fixed(rate, target, most, runs=runs, seed=seed) for rate in rates) / len(rates)
    print(f"  {most} trials in every cell and the ordinary interval decide {fixed:.1%}")
    for race in ([0.9] * 2, [0.9] * 5, [0.7, 0.95], [0.8, 0.9, 0.9, 0.95, 0.7]):
        row = simulate_cells(race, StoppingRule("best"), most=most, runs=runs, seed=seed)
        _print_rows(f"best of {race}", StoppingRule("best").error, [row], most)


def _print_rows(title: str, stated: float, rows: Sequence[SimulationResult], most: int) -> None:
    worst, out = max(row.wrong for row in rows), max(row.left_out for row in rows)
    decided = sum(row.decided for row in rows) / len(rows)
    trials = sum(row.trials for row in rows) / len(rows)
    held = all(row.within(stated) for row in rows)
    print(
        f"{title}: stated {stated:g}; wrong at most {worst:.4f}, rate left out at most {out:.4f}, "
        f"{'held' if held else 'NOT HELD'}; decided {decided:.1%}, {trials:.1f} trials a cell, "
        f"saved {1 - trials / most:.1%}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    _print_report(given.runs, given.seed, given.most)
