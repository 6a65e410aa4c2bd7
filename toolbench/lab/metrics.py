"""What the matrix can show of a row: rates with their denominators in the name, and figures as ranges."""

from collections.abc import Callable
from dataclasses import dataclass

from toolbench.lab.rates import Rate
from toolbench.lab.tallies import Tally


@dataclass(frozen=True, slots=True)
class Metric:
    """`denominator` says k of what in n of what. `judged`: read against the target, more is better."""

    name: str
    label: str
    denominator: str
    judged: bool
    of_control: bool
    rate: Callable[[Tally, int | None], Rate] | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as a range over what was pooled: equal ends when there is one. Unit: ms, tokens, dollars."""

    low: float
    high: float
    unit: str


def _first_attempt(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.first_attempt_passed, tally.answered, target)


def _parity(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.parity_passed, tally.answered, target)


def _structured(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.structured_answers, tally.calling_answers, target)


def _schema(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.valid_calls, tally.calls, target)


def _parse_errors(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.parse_error_turns, tally.calling_turns)


def _repaired(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.repaired_calls, tally.calls)


def _parse_ends(tally: Tally, target: int | None) -> Rate:
    return tally.rate(tally.parse_error_ends, tally.calling_turns + tally.parse_error_ends)


def tokens_per_trial(tally: Tally) -> Figure | None:
    tried = tally.passed + tally.failed + tally.infra
    mean = (tally.input_tokens + tally.output_tokens) / tried if tried else 0.0
    return Figure(mean, mean, "tokens") if mean else None


def cost_per_success(tally: Tally) -> Figure | None:
    """Failed and retried requests are paid and counted. None while the cost is unknown or nothing passed."""
    if tally.cost is None or not tally.passed:
        return None
    return Figure(tally.cost / tally.passed, tally.cost / tally.passed, "dollars")


_ALL = (
    Metric("given", "Success given an answer", "passed / trials with an answer", True, False, Tally.given_an_answer),
    Metric("delivered", "Delivered success", "passed / trials, infrastructure included", True, False, Tally.delivered),
    Metric("first", "First-attempt success", "passed without a second sample / answered", True, False, _first_attempt),
    Metric("parity", "Success by the case study’s rule", "passed by its rule / answered", True, False, _parity),
    Metric("control", "Control", "passed / control trials with an answer", False, True, Tally.given_an_answer),
    Metric("structured", "Structured-call rate", "structured calls / answers that called", True, False, _structured),
    Metric("schema", "Schema accuracy", "valid calls / calls", True, False, _schema),
    Metric("parse", "Parse-error rate", "turns with a parse error / turns that called", False, False, _parse_errors),
    Metric("repaired", "Repaired-call rate", "calls read after a named repair / calls", False, False, _repaired),
    Metric("ended", "Turns ended by a parse error", "such turns / turns that called", False, False, _parse_ends),
    Metric("p50", "p50 latency", "trial without queue, by scenario", False, False, None),
    Metric("p95", "p95 latency", "trial without queue, scenarios with 60 or more answers", False, False, None),
    Metric("tokens", "Tokens per trial", "input and output, all attempts", False, False, None),
    Metric("cost", "Cost per success", "all requests paid / passed", False, False, None),
)
METRICS = {metric.name: metric for metric in _ALL}
