"""Whether personas pass as often as they publish: `python -m benchmarks.personas`.

Every persona plays drawn tool scenarios through the real server, loop, driver and verdicts, in strategies raw and
production, native and not streamed. What is counted has to lie within the exact binomial interval that holds 999 of
1,000 counts; where the published rate is 0 or 1, it has to be that."""

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
    """Passes of a persona in a strategy, over scenarios that publish the same rate."""

    persona: str
    strategy: str
    rate: float
    passed: int
    trials: int

    @property
    def holds(self) -> bool:
        low, high = stats.binom.interval(CONFIDENCE, self.trials, self.rate)
        return bool(low <= self.passed <= high)

    def __str__(self) -> str:
        verdict = "yes" if self.holds else "NO"
        return f"| {self.persona} | {self.strategy} | {self.rate} | {self.passed} of {self.trials} | {verdict} |"


def iter_plans(persona: Persona, trials: int) -> Iterator[tuple[str, float, list[tuple[Cell, int]]]]:
    """By strategy and published rate: which scenario is tried with which seed, `trials` for each strategy."""
    members = scenarios.group_scenarios()["tools"]
    for strategy in STRATEGIES:
        by_rate: dict[float, list[tuple[Cell, int]]] = {}
        for seed in range(trials):
            slug = members[seed % len(members)].slug
            rates = persona.true_rates[slug if slug in persona.true_rates else "tools"]
            by_rate.setdefault(rates[strategy], []).append((Cell((persona.slug,), slug, strategy), seed))
        for rate, tried in by_rate.items():
            yield strategy, rate, tried


def measure(slugs: Sequence[str], trials: int) -> int:
    """Print a line per persona, strategy and rate; return how many do not hold."""
    failed = 0
    for slug in slugs:
        for strategy, rate, tried in iter_plans(load_personas()[slug], trials):
            passed = sum(one.verdict.task_pass is True for one in play_trials(tried))
            line = MeasuredPersona(slug, strategy, rate, passed, len(tried))
            print(line, flush=True)
            failed += not line.holds
    return failed


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.personas", description=__doc__)
    parser.add_argument("--trials", type=int, default=DEFAULT_TRIALS)
    parser.add_argument("personas", nargs="*", default=list(load_personas()))
    given = parser.parse_args(None if arguments is None else list(arguments))
    print("| persona | strategy | published | passed | holds |\n|---|---|---|---|---|")
    return min(measure(given.personas, given.trials), 1)


if __name__ == "__main__":
    sys.exit(main())
