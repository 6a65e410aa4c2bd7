"""The requirements of a decision rule: bounds of delivered success and p95, and reasons against a configuration.

The checks are a table; each has a name that pages, exports and records use.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolbench.evals.statistics import Quantile, Z, compute_quantile
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import (
    PooledRate,
    count_trials_per_scenario,
    list_smallest_samples,
    pool_samples,
)
from toolbench.evals.statistics.quantiles import count_answers_until_closed
from toolbench.evals.statistics.rounding import format_rounded, round_half_up

REFUSED, OPEN, TO_CONFIRM = "refused", "open", "confirm"
UNDECIDED, P95_UNKNOWN = "undecided", "p95-unknown"
CHEAPEST, FASTEST, RELIABLE = "cheapest", "fastest", "reliable"
DECISION_GOALS = (CHEAPEST, FASTEST, RELIABLE)
PRICES_FILE = "toolbench/evals/data/prices.json"
MAX_DECIMAL_PLACES = 4  # of a bound in a sentence


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """The goal and the limits of a decision.

    Attributes:
        want: cheapest, fastest or reliable.
        success: The delivered success required, in percent.
        within_ms: The largest p95 permitted, in milliseconds; None for no limit.
    """

    want: str = CHEAPEST
    success: float = 90.0
    within_ms: float | None = 20_000.0

    @property
    def target(self) -> float:
        """Return the delivered success required, as a fraction."""
        return self.success / 100

    @property
    def goal(self) -> str:
        """Return the goal as a sentence words it."""
        return "most reliable" if self.want == RELIABLE else self.want

    @property
    def timed(self) -> bool:
        """Return whether latency matters for the decision."""
        return self.within_ms is not None or self.want == FASTEST


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A figure with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeasuredConfig:
    """The measurements of a configuration.

    Attributes:
        tried: All trials; `answered` leaves out infrastructure errors and passed trial deadlines.
        times: Times of answered trials, in milliseconds.
        cost: Dollars per delivered success; None if it is not known. `cost_from` is its source, or why it is not known.
        lost: Infrastructure errors with their counts, the most frequent first.
        missing: Scenarios that the other configurations were tried on and this one was not.
        local: Whether the model shares this machine.
        repeating: Whether a deterministic endpoint gave an answer twice.
        added_manually: Trials added after seeing results.
        late: Passes that needed a manual repeat after an error, and so were not delivered.
        delivery: Delivered passes of all trials by scenario; () for one scenario of independent trials.
        given: Passes of answered trials by scenario; () in the same way.
        planned: Whether the decision page planned some trials, after seeing results, as a run of their own.
        scenarios: The names of the scenarios in `delivery`, in the same order.
    """

    key: str
    label: str
    passed: int
    tried: int
    answered: int
    times: Sequence[float] = ()
    cost: IntervalEstimate | None = None
    lost: tuple[tuple[str, int], ...] = ()
    missing: tuple[str, ...] = ()
    local: bool = False
    repeating: bool = False
    added_manually: int = 0
    late: int = 0
    delivery: tuple[ScenarioSample, ...] = ()
    given: tuple[ScenarioSample, ...] = ()
    cost_from: str = ""
    planned: bool = False
    scenarios: tuple[str, ...] = ()

    @property
    def delivered(self) -> int:
        """Return the passes that were delivered."""
        return self.passed - self.late

    @property
    def delivered_samples(self) -> tuple[ScenarioSample, ...]:
        """Return the delivered passes by scenario, or all together as one if the scenarios are not known."""
        return self.delivery or (ScenarioSample(self.delivered, self.tried),)

    @property
    def delivered_pool(self) -> PooledRate:
        """Return delivered success, pooled over scenarios."""
        return pool_samples(self.delivered_samples)

    @property
    def answered_pool(self) -> PooledRate:
        """Return answered success, pooled over scenarios."""
        return pool_samples(self.given or (ScenarioSample(self.passed, self.answered),))


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason; `kind` is refused, open (more trials may decide) or confirm (only new trials may decide)."""

    name: str
    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class TrialShortfall:
    """The trials that are lacking: `each` more of every scenario at the indices `places`."""

    places: tuple[int, ...]
    each: int

    @property
    def total(self) -> int:
        """Return the number of trials of all those scenarios."""
        return self.each * len(self.places)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of applying a rule to a configuration.

    Attributes:
        low: The lower bound of delivered success, as a fraction; `high` is the upper one.
        answered_low: The lower bound of answered success.
        p95: None without an answer and for models that share this machine; its bounds may be open.
        shortfall: The fewest more trials, answered and at the shares observed, that close all open reasons. None if no
            reason is open, or if trials would not close them.
    """

    measured: MeasuredConfig
    low: float
    high: float
    answered_low: float
    p95: Quantile | None
    reasons: tuple[Reason, ...] = ()
    shortfall: TrialShortfall | None = None

    @property
    def state(self) -> str:
        """Return `qualified`, or the most serious kind of its reasons."""
        kinds = {reason.kind for reason in self.reasons}
        return next((kind for kind in (REFUSED, OPEN, TO_CONFIRM) if kind in kinds), "qualified")

    @property
    def missing(self) -> int | None:
        """Return how many trials are lacking in total; None without a shortfall."""
        return self.shortfall.total if self.shortfall else None


CheckRequirement = Callable[[Assessment, DecisionRule], str]


def assess_config(measured: MeasuredConfig, rule: DecisionRule) -> Assessment:
    """Return the assessment of a configuration, with the reason of every check that it fails."""
    delivered, given = measured.delivered_pool, measured.answered_pool
    p95 = compute_quantile(measured.times, 0.95) if measured.times and not measured.local else None
    bare = Assessment(measured, delivered.low, delivered.high, given.low, p95)
    found = [(name, kind, check(bare, rule)) for name, kind, check in REQUIREMENT_CHECKS]
    reasons = tuple(Reason(name, kind, sentence) for name, kind, sentence in found if sentence)
    return replace(
        bare,
        reasons=reasons,
        shortfall=_find_shortfall(bare, rule, [reason.name for reason in reasons if reason.kind == OPEN]),
    )


def count_passes_without_failure(target: float) -> int:
    """Return how many passes without a failure lift the lower bound to `target`, a fraction."""
    return math.ceil(Z**2 * target / (1 - target))


def describe_delivered(measured: MeasuredConfig, rule: DecisionRule) -> str:
    """Return delivered passes/trials and the interval in percent, as text."""
    low, high = (
        _format_bound(bound, rule.target) for bound in (measured.delivered_pool.low, measured.delivered_pool.high)
    )
    return f"{measured.delivered}/{measured.tried} [{low}–{high}]"


def _format_bound(bound: float, target: float) -> str:
    """Return a bound in whole percent, with more decimal places if rounding would move it across the target."""
    exact = 100 * bound
    places = (
        more for more in range(MAX_DECIMAL_PLACES) if (round_half_up(exact, more) < 100 * target) == (bound < target)
    )
    return format_rounded(exact, next(places, MAX_DECIMAL_PLACES))


def _find_shortfall(standing: Assessment, rule: DecisionRule, names: Sequence[str]) -> TrialShortfall | None:
    """Return the fewest more trials that close these reasons; None if none would.

    Scenarios with few trials may be the only obstacle of a share, whereas any answer counts for p95.
    """
    subsets = list_smallest_samples(standing.measured.delivered_samples)
    tried_subsets = subsets if UNDECIDED in names else subsets[-1:]
    found = [_compute_shortfall(standing, rule, names, subset) for subset in tried_subsets]
    shortfalls = [shortfall for shortfall in found if shortfall]
    return min(shortfalls, key=lambda shortfall: (shortfall.total, shortfall.each), default=None)


def _compute_shortfall(
    standing: Assessment, rule: DecisionRule, names: Sequence[str], places: tuple[int, ...]
) -> TrialShortfall | None:
    needed = [COUNT_SHORTFALL_BY_CHECK[name](standing, rule, places) for name in names]
    known = [count for count in needed if count is not None]
    return TrialShortfall(places, max(known)) if known and len(known) == len(needed) else None


def _count_more_passes(standing: Assessment, rule: DecisionRule, places: tuple[int, ...]) -> int | None:
    return count_trials_per_scenario(standing.measured.delivered_samples, rule.target, places)


def _count_more_answers(standing: Assessment, rule: DecisionRule, places: tuple[int, ...]) -> int | None:
    """Return the trials per scenario that close both bounds of p95."""
    return math.ceil(count_answers_until_closed(0.95, len(standing.measured.times)) / len(places))


def in_words(lacking: TrialShortfall, measured: MeasuredConfig) -> str:
    """Return the shortfall as text, such as `10 more trials of guard (2 so far)`."""
    parts, places, total = measured.delivered_samples, lacking.places, lacking.total
    trials = f"{total:,} more trial{'' if total == 1 else 's'}"
    if len(places) == len(parts):
        return f"{trials} ({lacking.each:,} of each scenario)" if len(parts) > 1 else trials
    names = measured.scenarios or tuple(f"scenario {number}" for number in range(1, len(parts) + 1))
    short = [f"{names[place]} ({_describe_sample(parts[place])})" for place in places]
    return f"{trials} of {short[0]}" if len(short) == 1 else f"{trials}, {lacking.each:,} each of {', '.join(short)},"


def _describe_sample(part: ScenarioSample) -> str:
    return f"worth {part.n:,} independent ones so far" if part.clustered else f"{part.n:,} so far"


def _check_tried(standing: Assessment, rule: DecisionRule) -> str:
    return "" if standing.measured.tried else "Nothing of it was tried, or nothing of it applies."


def _check_scenarios(standing: Assessment, rule: DecisionRule) -> str:
    missing = ", ".join(standing.measured.missing)
    return f"It was not tried on {missing}, which others met: not the same task." if missing else ""


def _check_repeats(standing: Assessment, rule: DecisionRule) -> str:
    if not standing.measured.repeating:
        return ""
    return "Its repeats gave the same answers: they are no independent trials, so no bound can be claimed."


def _check_delivery(standing: Assessment, rule: DecisionRule) -> str:
    """Return the reason if the answers are good enough but too many trials had none."""
    measured = standing.measured
    arrived_short = standing.low < rule.target <= standing.answered_low
    if not arrived_short or (measured.answered == measured.tried and not measured.late):
        return ""
    late = (("only after a person tried again", measured.late),) if measured.late else ()
    causes = ", ".join(f"{name} × {count}" for name, count in (*measured.lost, *late)) or "our own deadline"
    return (
        f"Refused for delivery: {_count_unanswered(measured)} of {measured.tried} trials brought no answer "
        f"({causes}). Delivered {describe_delivered(measured, rule)} %, "
        f"lower bound below {format_rounded(rule.success)} %; "
        f"of the answers, {measured.passed}/{measured.answered} passed."
    )


def _count_unanswered(measured: MeasuredConfig) -> int:
    return measured.tried - measured.answered + measured.late


def _check_success(standing: Assessment, rule: DecisionRule) -> str:
    if not standing.measured.tried or standing.high >= rule.target or _check_delivery(standing, rule):
        return ""
    bounds = describe_delivered(standing.measured, rule)
    return f"Passes too rarely: delivered {bounds} %, all of it below {format_rounded(rule.success)} %."


def _check_decided(standing: Assessment, rule: DecisionRule) -> str:
    measured, goal = standing.measured, format_rounded(rule.success)
    if not measured.tried or not standing.low < rule.target <= standing.high or _check_delivery(standing, rule):
        return ""
    begun = f"Not decided: delivered {describe_delivered(measured, rule)} %, and {goal} % lies inside."
    lacking = _find_shortfall(standing, rule, [UNDECIDED])
    if lacking is None:
        return f"{begun} At the observed share, no number of trials would lift its lower bound to {goal} %."
    sentence = f"{begun} {in_words(lacking, measured)} at this rate would decide it"
    if measured.delivered == measured.tried and _is_plain_count(measured):
        needed = count_passes_without_failure(rule.target)
        return f"{sentence}: {needed} passes without a failure are needed for {goal} %."
    return f"{sentence}."


def _is_plain_count(measured: MeasuredConfig) -> bool:
    """Return whether only the sum of independent trials, equally many of every scenario, matters."""
    parts = measured.delivered_samples
    alike = len({part.n for part in parts}) == 1
    return alike and not measured.delivered_pool.error and not any(part.clustered for part in parts)


def _check_local(standing: Assessment, rule: DecisionRule) -> str:
    shared = rule.timed and standing.measured.local
    return "It shares this machine: its latency takes no part in decisions." if shared else ""


def _check_p95_known(standing: Assessment, rule: DecisionRule) -> str:
    if not rule.timed or standing.measured.local or not standing.measured.answered:
        return ""
    p95, answers = standing.p95, len(standing.measured.times)
    if p95 is None:
        return "Its p95 is not known: no answer has a time."
    if not p95.is_open or _check_p95(standing, rule):
        return ""
    lacking = _find_shortfall(standing, rule, [P95_UNKNOWN])
    sentence = in_words(lacking, standing.measured) if lacking else ""
    counted_answers = f"{answers} answer{'' if answers == 1 else 's'}"
    return f"The upper bound of its p95 is open with {counted_answers}: it closes with {sentence}."


def _check_p95(standing: Assessment, rule: DecisionRule) -> str:
    """Return the reason if the upper bound of p95 exceeds the limit, or the lower one while the upper one is open."""
    p95, limit = standing.p95, rule.within_ms
    if p95 is None or limit is None:
        return ""
    value, goal = format_rounded(p95.value / 1000, 1), f"the limit is {limit / 1000:g} s"
    if p95.high is not None and p95.high > limit:
        return f"Too slow: p95 {value} s, upper bound {format_rounded(p95.high / 1000, 1)} s; {goal}."
    if p95.high is None and p95.low is not None and p95.low > limit:
        return f"Too slow: p95 {value} s, lower bound {format_rounded(p95.low / 1000, 1)} s; {goal}."
    return ""


def _check_cost(standing: Assessment, rule: DecisionRule) -> str:
    unknown = rule.want == CHEAPEST and standing.measured.cost is None
    why = f" ({standing.measured.cost_from})" if standing.measured.cost_from else ""
    where = f"A price that its provider does not name can be added to {PRICES_FILE}."
    return f"What it costs is not known{why}, so it cannot be called cheapest. {where}" if unknown else ""


def _check_added_manually(standing: Assessment, rule: DecisionRule) -> str:
    added = standing.measured.added_manually
    return f"{added} of its trials were added by hand after looking: only fresh trials may confirm it." if added else ""


def _check_stopping(standing: Assessment, rule: DecisionRule) -> str:
    if standing.measured.delivered_pool.error is None:
        return ""
    return (
        "Its cells used sequential stopping: its bounds of success are anytime-valid, those of time and "
        "cost do not. Fresh trials may confirm it."
    )


REQUIREMENT_CHECKS: tuple[tuple[str, str, CheckRequirement], ...] = (
    ("nothing", REFUSED, _check_tried),
    ("scenarios", REFUSED, _check_scenarios),
    ("repeats", REFUSED, _check_repeats),
    ("delivery", REFUSED, _check_delivery),
    ("success", REFUSED, _check_success),
    (UNDECIDED, OPEN, _check_decided),
    ("local", REFUSED, _check_local),
    (P95_UNKNOWN, OPEN, _check_p95_known),
    ("p95", REFUSED, _check_p95),
    ("cost-unknown", REFUSED, _check_cost),
    ("by-hand", TO_CONFIRM, _check_added_manually),
    ("stopped", TO_CONFIRM, _check_stopping),
)

COUNT_SHORTFALL_BY_CHECK: Mapping[str, Callable[[Assessment, DecisionRule, tuple[int, ...]], int | None]] = {
    UNDECIDED: _count_more_passes,
    P95_UNKNOWN: _count_more_answers,
}
