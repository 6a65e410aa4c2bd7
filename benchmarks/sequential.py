"""How often the rules of "until decided" err, and what they save, on the published matrix's rates: 10,000 simulated
runs of each. `python -m benchmarks.sequential`; `--runs`, `--seed`, `--most`."""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolbench.evals.published import snapshots
from toolbench.evals.statistics import wilson
from toolbench.evals.statistics.sequential import always_valid
from toolbench.evals.statistics.stopping import FIRST, STEP, Count, Until, decide

Counts = NDArray[np.int64]
OPEN = ""


@dataclass(frozen=True, slots=True)
class Played:
    """Simulated runs of one cell, or of one scenario's cells: shares of runs, and trials per cell on average."""

    runs: int
    wrong: float  # something was decided that is not so
    left_out: float  # the interval shown at the end leaves out the rate (of some cell)
    decided: float
    trials: float

    def within(self, stated: float) -> bool:
        """Whether both errors are at most the stated one, within three Monte-Carlo standard errors."""
        return max(self.wrong, self.left_out) <= stated + 3 * math.sqrt(stated * (1 - stated) / self.runs)


def play_cell(rate: float, until: Until, *, most: int, runs: int, seed: int) -> Played:
    """One cell with this true rate, looked at as the lab does it."""
    drawing = np.random.default_rng(seed)
    passed, tried, words = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.full(runs, OPEN, dtype="<U8")
    for n, more in _looks(most):
        going = words == OPEN
        passed[going] += drawing.binomial(more, rate, int(going.sum()))
        tried[going] = n
        said = np.array([decide(until, [Count(k, n, until.error)])[0] for k in range(n + 1)])
        words[going] = said[passed[going]]
    target = until.target / 100
    wrong = (words == "above") & (rate < target) | (words == "below") & (rate >= target)
    left_out = _left_out(rate, passed, tried, until.error)
    return Played(runs, _mean(wrong), _mean(left_out), _mean(words != OPEN), float(tried.mean()))


def play_race(rates: Sequence[float], until: Until, *, most: int, runs: int, seed: int) -> Played:
    """Cells of one scenario with these true rates, until one is the best. Wrong: one of the best was beaten, or one
    that is not alone at the top was called the best."""
    drawing = np.random.default_rng(seed)
    error, highest = until.cell_error(len(rates)), max(rates)
    wrong, left_out, decided, trials = 0, 0, 0, 0
    for _ in range(runs):
        cells = [Count(0, 0, error)] * len(rates)
        words = [OPEN] * len(rates)
        for _, more in _looks(most):
            cells = [
                Count(cell.k + int(drawing.binomial(more, rate)), cell.n + more, error) if word == OPEN else cell
                for cell, rate, word in zip(cells, rates, words, strict=True)
            ]
            words = [word or new for word, new in zip(words, decide(until, cells), strict=True)]
            if OPEN not in words:
                break
        wrong += any(word == "beaten" and rate == highest for word, rate in zip(words, rates, strict=True))
        left_out += any(
            not low <= rate <= high
            for rate, (low, high) in zip(rates, (always_valid(c.k, c.n, error) for c in cells), strict=True)
        )
        decided += OPEN not in words
        trials += sum(cell.n for cell in cells)
    return Played(runs, wrong / runs, left_out / runs, decided / runs, trials / runs / len(rates))


def published_rates() -> list[float]:
    """Of the published matrix's rows with tools, one for each."""
    return [cell.tool[0] / cell.tool[1] for cell in snapshots()[0].cells if not cell.not_applicable]


def _looks(most: int) -> Iterator[tuple[int, int]]:
    """Trials of a cell at each look, and how many of them are new."""
    n = min(FIRST, most)
    yield n, n
    while n < most:
        more = min(STEP, most - n)
        n += more
        yield n, more


def _left_out(rate: float, passed: Counts, tried: Counts, error: float) -> NDArray[np.bool_]:
    ends = {(k, n): always_valid(k, n, error) for k, n in set(zip(passed.tolist(), tried.tolist(), strict=True))}
    shown = [ends[pair] for pair in zip(passed.tolist(), tried.tolist(), strict=True)]
    return np.array([not low <= rate <= high for low, high in shown])


def _mean(found: NDArray[np.bool_]) -> float:
    return float(found.mean())


def _peeked(rate: float, target: float, *, most: int, runs: int, seed: int) -> float:
    """The error of the same threshold rule with the ordinary interval in place of the always-valid one."""
    drawing = np.random.default_rng(seed)
    passed, wrong, going = np.zeros(runs, np.int64), np.zeros(runs, bool), np.ones(runs, bool)
    for n, more in _looks(most):
        passed[going] += drawing.binomial(more, rate, int(going.sum()))
        low, high = np.array([wilson(k, n) for k in range(n + 1)]).T
        above, below = low[passed] >= target, high[passed] < target
        wrong |= going & (above if rate < target else below)
        going &= ~(above | below)
    return _mean(wrong)


def _fixed(rate: float, target: float, n: int, *, runs: int, seed: int) -> float:
    """How often a fixed number of trials decides by the ordinary interval."""
    low, high = np.array([wilson(k, n) for k in range(n + 1)]).T
    passed = np.random.default_rng(seed).binomial(n, rate, runs)
    return _mean((low[passed] >= target) | (high[passed] < target))


def _report(runs: int, seed: int, most: int) -> None:
    rates = published_rates()
    print(
        f"{len(rates)} rows of the published matrix, {runs:,} runs of each, at most {most} trials a cell, seed {seed}"
    )
    for until in (Until("threshold"), Until("threshold", error=0.1), Until("width"), Until("width", width=30)):
        rows = [play_cell(rate, until, most=most, runs=runs, seed=seed + at) for at, rate in enumerate(rates)]
        _say(str(until), until.error, rows, most)
    target = Until().target / 100
    close = (0.85, 0.875, 0.9, 0.925)
    for rate in close:
        row = play_cell(rate, Until(), most=most, runs=runs, seed=seed)
        peeked = _peeked(rate, target, most=most, runs=runs, seed=seed)
        print(f"  rate {rate:.1%} against 90 %: wrong {row.wrong:.4f}; the ordinary interval so watched {peeked:.4f}")
    fixed = sum(_fixed(rate, target, most, runs=runs, seed=seed) for rate in rates) / len(rates)
    print(f"  {most} trials in every cell and the ordinary interval decide {fixed:.1%}")
    for race in ([0.9] * 2, [0.9] * 5, [0.7, 0.95], [0.8, 0.9, 0.9, 0.95, 0.7]):
        row = play_race(race, Until("best"), most=most, runs=runs, seed=seed)
        _say(f"best of {race}", Until("best").error, [row], most)


def _say(title: str, stated: float, rows: Sequence[Played], most: int) -> None:
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
    _report(given.runs, given.seed, given.most)
