"""Counts of several cells added up, and the two rates that follow from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbench.lab.models import Cell
from toolbench.lab.rates import Rate, rate_of

SUMMED = (
    "queued",
    "running",
    "passed",
    "failed",
    "infra",
    "not_applicable",
    "cancelled",
    "deadline_failed",
    "distinct",
    "requests",
    "retries",
    "input_tokens",
    "output_tokens",
    "added_by_hand",
    "saturated",
    "parity_passed",
    "first_attempt_passed",
    "calls",
    "valid_calls",
    "structured_answers",
    "calling_answers",
    "parse_error_turns",
    "calling_turns",
)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over `cells` cells. `cost` is None when no endpoint named one."""

    cells: int = 0
    queued: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    infra: int = 0
    not_applicable: int = 0
    cancelled: int = 0
    deadline_failed: int = 0
    distinct: int = 0
    requests: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    added_by_hand: int = 0
    saturated: int = 0
    parity_passed: int = 0
    first_attempt_passed: int = 0
    calls: int = 0
    valid_calls: int = 0
    structured_answers: int = 0
    calling_answers: int = 0
    parse_error_turns: int = 0
    calling_turns: int = 0
    cost: float | None = None

    @property
    def total(self) -> int:
        return self.done + self.queued + self.running

    @property
    def done(self) -> int:
        return self.passed + self.failed + self.infra + self.not_applicable + self.cancelled

    @property
    def dots(self) -> Mapping[str, int]:
        return {
            "pass": self.passed,
            "fail": self.failed,
            "infra": self.infra,
            "na": self.not_applicable,
            "cancelled": self.cancelled,
            "running": self.running,
            "queued": self.queued,
        }

    def given_an_answer(self, target: int | None = None) -> Rate:
        """Infrastructure and our own deadline left out."""
        answered = self.passed + self.failed - self.deadline_failed
        return rate_of(self.passed, answered, target=target, distinct=self.distinct or None)

    def delivered(self, target: int | None = None) -> Rate:
        """Infrastructure and our own deadline count as failures."""
        return rate_of(self.passed, self.passed + self.failed + self.infra, target=target)


def tally(cells: Iterable[Cell]) -> Tally:
    cells = tuple(cells)
    costs = [cell.cost for cell in cells if cell.cost is not None]
    sums = {name: sum(getattr(cell, name) for cell in cells) for name in SUMMED}
    return Tally(cells=len(cells), cost=sum(costs) if costs else None, **sums)


def pooled(tallies: Iterable[Tally]) -> Tally:
    """The sum of sums."""
    tallies = tuple(tallies)
    costs = [one.cost for one in tallies if one.cost is not None]
    sums = {name: sum(getattr(one, name) for one in tallies) for name in ("cells", *SUMMED)}
    return Tally(cost=sum(costs) if costs else None, **sums)
