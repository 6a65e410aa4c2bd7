"""Sequential stopping of cells: the rules, what they need, and what they decide from counts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.sequential import compute_anytime_interval

RULE_DESCRIPTIONS: Mapping[str, str] = {
    "threshold": "the interval lies on one side of the target",
    "width": "the interval is narrow enough",
    "best": "one configuration is better than every other in the same scenario",
}
RATE_NAMES: Mapping[str, str] = {"given": "success given an answer", "delivered": "delivered success"}
FIRST_ANALYSIS_TRIALS, ANALYSIS_STEP_TRIALS = 10, 5  # trials per cell


class StoppingRuleError(ValueError):
    """A stopping rule that cannot be followed; the message says why."""


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """A rule that ends the trials of a cell.

    Attributes:
        rule: A key of RULE_DESCRIPTIONS.
        rate: A key of RATE_NAMES.
        error: The largest probability of a wrong decision: for each cell, or for each scenario with `best`.
        target: A percentage, used by `threshold`.
        width: Percentage points, used by `width`.
    """

    rule: str = "threshold"
    rate: str = "given"
    error: float = 0.05
    target: float = 90
    width: float = 20

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "StoppingRule":
        """Return the rule from plain data.

        Raises:
            StoppingRuleError: A field is unknown or has a wrong value; the message is a plain sentence.
        """
        if unknown := sorted(set(value) - {f.name for f in fields(cls)}):
            raise StoppingRuleError(f"A stopping rule has no {unknown[0]}.")
        until = cls(**value)
        for problem, wrong in until._list_problems():
            if wrong:
                raise StoppingRuleError(problem)
        return until

    def _list_problems(self) -> tuple[tuple[str, bool], ...]:
        numbers = (self.error, self.target, self.width)
        if not all(isinstance(number, int | float) for number in numbers):
            return (("Error, target and width of a stopping rule are numbers.", True),)
        return (
            (
                f"There is no rule {self.rule}: choose from {', '.join(RULE_DESCRIPTIONS)}.",
                self.rule not in list(RULE_DESCRIPTIONS),
            ),
            (f"There is no rate {self.rate}: choose from {', '.join(RATE_NAMES)}.", self.rate not in list(RATE_NAMES)),
            ("The error is between 0.1 % and 50 %.", not 0.001 <= self.error <= 0.5),
            ("The target is a percentage between 0 and 100.", not 0 < self.target < 100),
            ("The width is between 1 and 99 points.", not 1 <= self.width <= 99),
        )

    def to_json(self) -> JsonObject:
        """Return the rule as plain data, as `read` takes it."""
        return asdict(self)

    def cell_error(self, competitors: int) -> float:
        """Return the error of one cell's interval; `best` divides it, so that all intervals hold simultaneously."""
        return self.error / max(1, competitors) if self.rule == "best" else self.error

    def __str__(self) -> str:
        rate, error = RATE_NAMES[self.rate], f"error {100 * self.error:g} %"
        if self.rule == "threshold":
            return f"{rate} against {self.target:g} %, {error} a cell"
        if self.rule == "width":
            return f"{rate} known within {self.width:g} points, {error} a cell"
        return f"the best {rate} of every scenario, {error} a scenario"


@dataclass(frozen=True, slots=True)
class CellCount:
    """Passes `k` of `n` trials in a cell; `error` is that of its own interval."""

    k: int
    n: int
    error: float


def decide_cells(until: StoppingRule, rivals: Sequence[CellCount]) -> tuple[str, ...]:
    """Return the decision for each cell of one scenario, "" while it is open.

    The decisions are above, below, narrow, best and beaten.
    """
    ends = [compute_anytime_interval(count.k, count.n, count.error) for count in rivals]
    if until.rule == "threshold":
        return tuple(_compare_with_target(until.target / 100, low, high) for low, high in ends)
    if until.rule == "width":
        return tuple("narrow" if high - low <= until.width / 100 else "" for low, high in ends)
    return _find_best(ends)


def _compare_with_target(target: float, low: float, high: float) -> str:
    if low >= target:
        return "above"
    return "below" if high < target else ""


def _find_best(ends: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """Return `beaten` for each interval wholly below another one, and `best` for the last one that is not."""
    highest = max(low for low, _ in ends)
    still = [high >= highest for _, high in ends]
    if len(ends) > 1 and sum(still) == 1:
        return tuple("best" if inside else "beaten" for inside in still)
    return tuple("" if inside else "beaten" for inside in still)
