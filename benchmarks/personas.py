"""Success rates of simulated models, measured and as published: `python -m benchmarks.personas`.

Every simulated model runs drawn tool scenarios through the real server, loop, driver and verdicts, in strategies raw
and production, with native calls and without streaming. The number of passes has to be within the exact binomial
interval that has 999 of 1,000 counts; for a published rate of 0 or 1, the share has to be equal to it. The exit code is
1 if a rate is not as published.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scipy import stats

from benchmarks.simulated_trials import Cell, play_trials
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import Persona, load_personas

DEFAULT_TRIALS, CONFIDENCE = 200, 0.999
STRATEGIES = ("raw", "production")


@dataclass(frozen=True)
class MeasuredPersona:
    """Passes of a simulated model in a strategy, in the scenarios with one published rate."""

    persona: str
    strategy: str
    rate: float
    passed: int
    trials: int

    @property
    def holds(self) -> bool:
        """Whether the number of passes fits the published rate."""
        low, high = stats.binom.interval(CONFIDENCE, self.trials, self.rate)
        return bool(low <= self.passed <= high)

    def __str__(self) -> str:
        verdict = "yes" if self.holds else "NO"
        return f"| {self.persona} | {self.strategy} | {self.rate} | {self.passed} of {self.trials} | {verdict} |"


def iter_plans(persona: Persona, trials: int) -> Iterator[tuple[str, float, list[tuple[Cell, int]]]]:
    """Yield strategy, published rate, and the cells with seeds to try: `trials` for each strategy."""
    members = scenarios.group_scenarios()["tools"]
    for strategy in STRATEGIES:
        by_rate: dict[float, list[tuple[Cell, int]]] = {}
        for seed in range(trials):
            slug = members[seed % len(members)].slug
            rates = persona.true_rates[slug if slug in persona.true_rates else "tools"]
            by_rate.setdefault(rates[strategy], []).append((Cell((persona.slug,), slug, strategy), seed))
        for rate, cells in by_rate.items():
            yield strategy, rate, cells


def measure(slugs: Sequence[str], trials: int) -> int:
    """Print a row for each model, strategy and rate; return how many rates are not as published."""
    failed = 0
    for slug in slugs:
        for strategy, rate, cells in iter_plans(load_personas()[slug], trials):
            passed = sum(trial.verdict.task_pass is True for trial in play_trials(cells))
            row = MeasuredPersona(slug, strategy, rate, passed, len(cells))
            print(row, flush=True)
            failed += not row.holds
    return failed


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.personas", description=__doc__)
    parser.add_argument("--trials", type=int, default=DEFAULT_TRIALS, help="of each strategy (default 200)")
    parser.add_argument("personas", nargs="*", metavar="persona", help="names of simulated models (default all)")
    options = parser.parse_args(None if arguments is None else list(arguments))
    if unknown := set(options.personas) - load_personas().keys():
        parser.error(f"no such persona: {', '.join(sorted(unknown))}")
    print("| persona | strategy | published | passed | holds |\n|---|---|---|---|---|")
    return min(measure(options.personas or list(load_personas()), options.trials), 1)


if __name__ == "__main__":
    sys.exit(main())
