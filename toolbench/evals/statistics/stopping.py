"""When a cell has been tried enough: the rules, what they need, and what they say of counts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.evals.statistics.sequential import always_valid

RULES: Mapping[str, str] = {
    "threshold": "the interval lies on one side of the target",
    "width": "the interval is narrow enough",
    "best": "one configuration is better than every other in the same scenario",
}
RATES: Mapping[str, str] = {"given": "success given an answer", "delivered": "delivered success"}
FIRST, STEP = 10, 5  # trials of a cell before the first look, and from look to look


class UntilRefused(ValueError):
    """A rule that cannot be followed; its text says why."""


@dataclass(frozen=True, slots=True)
class Until:
    """`rule` decides with at most this `error`: of every cell, or for `best` of every scenario. `target` and `width`
    are percentages; each rule reads what it needs."""

    rule: str = "threshold"
    rate: str = "given"
    error: float = 0.05
    target: float = 90
    width: float = 20

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "Until":
        """Raises UntilRefused with a plain sentence."""
        if unknown := sorted(set(value) - {f.name for f in fields(cls)}):
            raise UntilRefused(f"A stopping rule has no {unknown[0]}.")
        until = cls(**value)
        for problem, wrong in until._problems():
            if wrong:
                raise UntilRefused(problem)
        return until

    def _problems(self) -> tuple[tuple[str, bool], ...]:
        numbers = (self.error, self.target, self.width)
        if not all(isinstance(number, int | float) for number in numbers):
            return (("Error, target and width of a stopping rule are numbers.", True),)
        return (
            (f"There is no rule {self.rule}: choose from {', '.join(RULES)}.", self.rule not in RULES),
            (f"There is no rate {self.rate}: choose from {', '.join(RATES)}.", self.rate not in RATES),
            ("The error is between 0.1 % and 50 %.", not 0.001 <= self.error <= 0.5),
            ("The target is a percentage between 0 and 100.", not 0 < self.target < 100),
            ("The width is between 1 and 99 points.", not 1 <= self.width <= 99),
        )

    def to_json(self) -> JsonObject:
        return asdict(self)

    def cell_error(self, competitors: int) -> float:
        """Of one cell's interval: the best of several is found by intervals that hold all at once."""
        return self.error / max(1, competitors) if self.rule == "best" else self.error

    def __str__(self) -> str:
        rate, error = RATES[self.rate], f"error {100 * self.error:g} %"
        if self.rule == "threshold":
            return f"{rate} against {self.target:g} %, {error} a cell"
        if self.rule == "width":
            return f"{rate} known within {self.width:g} points, {error} a cell"
        return f"the best {rate} of every scenario, {error} a scenario"


@dataclass(frozen=True, slots=True)
class Count:
    """`k` of `n` in a cell; `error` of its own interval."""

    k: int
    n: int
    error: float


def decide(until: Until, rivals: Sequence[Count]) -> tuple[str, ...]:
    """What is decided of each cell of one scenario: above, below, narrow, best, beaten; "" while it is open."""
    ends = [always_valid(count.k, count.n, count.error) for count in rivals]
    if until.rule == "threshold":
        return tuple(_against(until.target / 100, low, high) for low, high in ends)
    if until.rule == "width":
        return tuple("narrow" if high - low <= until.width / 100 else "" for low, high in ends)
    return _race(ends)


def _against(target: float, low: float, high: float) -> str:
    if low >= target:
        return "above"
    return "below" if high < target else ""


def _race(ends: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """Whoever lies wholly below another is out; the last one in is the best."""
    highest = max(low for low, _ in ends)
    still = [high >= highest for _, high in ends]
    if len(ends) > 1 and sum(still) == 1:
        return tuple("best" if inside else "beaten" for inside in still)
    return tuple("" if inside else "beaten" for inside in still)
