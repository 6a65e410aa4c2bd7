"""Sequential stopping of cells: the rules, their settings, and their decisions from counts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.sequential import compute_anytime_interval

RULE_DESCRIPTIONS: Mapping[str, str] = {
    "threshold": "the interval lies on one side of the target",
    "width": "the interval is narrow enough",
    "best": "one configuration is better than every other in the same scenario",
}
RATE_NAMES: Mapping[str, str] = {"given": "answered success", "delivered": "end-to-end success"}
FIRST_ANALYSIS_TRIALS, ANALYSIS_STEP_TRIALS = 10, 5  # per cell, before the first interim analysis and between two


class StoppingRuleError(ValueError):
    """A stopping rule that is not valid; the message is a sentence for users."""


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """A rule that ends the trials of a cell.

    Attributes:
        rule: A key of RULE_DESCRIPTIONS.
        rate: A key of RATE_NAMES.
        error: The largest probability of a wrong decision, as a fraction: for each cell, or with `best` for each
            scenario.
        target: The target of `threshold`, in percent.
        width: The largest width of the interval for `width`, in percentage points.
    """

    rule: str = "threshold"
    rate: str = "given"
    error: float = 0.05
    target: float = 90
    width: float = 20

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "StoppingRule":
        """Return the rule from plain data; a missing field gets its default.

        Raises:
            StoppingRuleError: A field is unknown or has a wrong value.
        """
        if unknown := sorted(set(document) - {field.name for field in fields(cls)}):
            raise StoppingRuleError(f"A stopping rule has no {unknown[0]}.")
        rule = cls(**document)
        if problem := next(rule._iter_problems(), ""):
            raise StoppingRuleError(problem)
        return rule

    def _iter_problems(self) -> Iterator[str]:
        numbers = (self.error, self.target, self.width)
        if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
            yield "Error, target and width of a stopping rule must be numbers."
            return
        if self.rule not in list(RULE_DESCRIPTIONS):  # a list, since a wrong value need not be hashable
            yield f"There is no rule {self.rule}: choose from {', '.join(RULE_DESCRIPTIONS)}."
        if self.rate not in list(RATE_NAMES):
            yield f"There is no rate {self.rate}: choose from {', '.join(RATE_NAMES)}."
        if not 0.001 <= self.error <= 0.5:
            yield "The error must be between 0.1 % and 50 %."
        if not 0 < self.target < 100:
            yield "The target must be a percentage between 0 and 100."
        if not 1 <= self.width <= 99:
            yield "The width must be between 1 and 99 points."

    def to_json(self) -> JsonObject:
        """Return the rule as plain data, which `from_json` accepts."""
        return asdict(self)

    def compute_cell_error(self, cell_count: int) -> float:
        """Return the error of the interval of one cell.

        With `best` it is an equal part of the rule's error, so that the intervals of all cells of a scenario hold
        simultaneously.

        Args:
            cell_count: The number of cells of the scenario; 0 counts as 1.
        """
        return self.error / max(1, cell_count) if self.rule == "best" else self.error

    def __str__(self) -> str:
        rate, error = RATE_NAMES[self.rate], f"error {100 * self.error:g} %"
        if self.rule == "threshold":
            return f"{rate} against {self.target:g} %, {error} a cell"
        if self.rule == "width":
            return f"{rate} with an interval at most {self.width:g} points wide, {error} a cell"
        return f"the best {rate} of every scenario, {error} a scenario"


@dataclass(frozen=True, slots=True)
class CellCount:
    """The counts of a cell.

    Attributes:
        k: The number of passes.
        n: The number of trials.
        error: The error of the cell's interval, as a fraction.
    """

    k: int
    n: int
    error: float


def decide_cells(rule: StoppingRule, counts: Sequence[CellCount]) -> tuple[str, ...]:
    """Return the decision for each cell of one scenario, in order.

    Args:
        rule: The stopping rule.
        counts: The counts of all cells of the scenario, at least one.

    Returns:
        For each cell: `above` or `below` with `threshold`, `narrow` with `width`, `best` or `beaten` with `best`; "" if
        the cell is not decided.

    Raises:
        ValueError: The counts of a cell do not satisfy 0 <= k <= n, or its error is not between 0 and 1.
    """
    intervals = [compute_anytime_interval(count.k, count.n, count.error) for count in counts]
    if rule.rule == "threshold":
        return tuple(_compare_with_target(rule.target / 100, low, high) for low, high in intervals)
    if rule.rule == "width":
        return tuple("narrow" if high - low <= rule.width / 100 else "" for low, high in intervals)
    return _find_best(intervals)


def _compare_with_target(target: float, low: float, high: float) -> str:
    if low >= target:
        return "above"
    return "below" if high < target else ""


def _find_best(intervals: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """Return the decision for each interval.

    The decision is `beaten` if the interval lies below another one. An interval that does not is `best` if there are
    several intervals and all others are beaten, else undecided ("").
    """
    highest_low = max(low for low, _ in intervals)
    is_candidate = [high >= highest_low for _, high in intervals]
    candidate_decision = "best" if len(intervals) > 1 and sum(is_candidate) == 1 else ""
    return tuple(candidate_decision if can_win else "beaten" for can_win in is_candidate)
