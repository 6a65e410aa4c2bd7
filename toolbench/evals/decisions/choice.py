"""The choice of a configuration by a rule.

It finds the Pareto front, the leader, and whether the intervals separate it from its rivals.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from toolbench.evals.decisions.requirements import (
    CHEAPEST,
    FASTEST,
    OPEN,
    PRICES_FILE,
    REFUSED,
    RELIABLE,
    TO_CONFIRM,
    Assessment,
    DecisionRule,
    IntervalEstimate,
    MeasuredConfig,
    TrialShortfall,
    assess_config,
    count_passes_without_failure,
)
from toolbench.evals.statistics import Z
from toolbench.evals.statistics.differences import ALPHA
from toolbench.evals.statistics.rounding import format_rounded

NO_CANDIDATE, ONLY_CANDIDATE, CLEAR_LEADER, UNCLEAR_LEADER, CONFIRM_LEADER = (
    "none",
    "alone",
    "clear",
    "unclear",
    "confirm",
)
_STATE_ORDER = ("qualified", TO_CONFIRM, OPEN, REFUSED)


@dataclass(frozen=True, slots=True)
class AdditionalTrials:
    """The trials that would decide: `each` more of every scenario named, for each of `assessments`."""

    assessments: tuple[Assessment, ...]
    shortfall: TrialShortfall

    @property
    def each(self) -> int:
        """Return the number of trials per scenario."""
        return self.shortfall.each

    @property
    def total(self) -> int:
        """Return the number of trials for one assessment."""
        return self.shortfall.total

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the names of the scenarios; () if they are not known."""
        names = self.assessments[0].measured.scenarios
        return tuple(names[place] for place in self.shortfall.places) if names else ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of applying a rule to all configurations.

    Attributes:
        assessments: The best first.
        front: Keys of the qualified configurations that no other one beats in everything. If none qualifies, of those
            that would qualify on fresh trials.
        verdict: none: no configuration qualifies; alone: only the leader does; clear: its interval lies apart from
            every rival's; unclear: it does not; confirm: the leader's trials may not decide, because they were added
            manually or stopped when decided.
        leader: None if no configuration qualifies or would qualify.
        chosen_among: The number of configurations compared.
        more: The trials that would decide; None if none would.
    """

    rule: DecisionRule
    assessments: tuple[Assessment, ...]
    front: frozenset[str]
    verdict: str
    leader: Assessment | None
    sentence: str
    chosen_among: int
    more: AdditionalTrials | None = None

    @property
    def to_confirm(self) -> bool:
        """Return whether the leader needs a confirmation run on new trials.

        It does if it was chosen among several, or if its trials were planned or added after seeing results.
        """
        leader = self.leader
        return leader is not None and (self.chosen_among > 1 or leader.state == TO_CONFIRM or leader.measured.planned)


def choose_config(measured: Iterable[MeasuredConfig], rule: DecisionRule) -> Decision:
    """Return the decision of a rule among configurations.

    Qualified ones come first, the best by the rule's goal first; of the open ones, those that more trials would let
    qualify come first.
    """
    standings = tuple(
        sorted(
            (assess_config(config, rule) for config in measured), key=lambda standing: _build_sort_key(standing, rule)
        )
    )
    able = [standing for standing in standings if standing.state == "qualified"]
    by_hand = [standing for standing in standings if standing.state == TO_CONFIRM]
    if not able and by_hand:
        sentence = f"{by_hand[0].measured.label} would qualify, but not by such trials: only fresh ones may say so."
        return Decision(
            rule, standings, find_pareto_configs(by_hand), CONFIRM_LEADER, by_hand[0], sentence, len(standings)
        )
    leader = able[0] if able else None
    verdict, sentence, more = _decide_verdict(able, standings, rule)
    return Decision(rule, standings, find_pareto_configs(able), verdict, leader, sentence, len(standings), more)


def get_target_figure(standing: Assessment, rule: DecisionRule) -> IntervalEstimate | None:
    """Return the figure that is to be smallest: p95, cost per success, or the share not delivered.

    None means that the figure or a bound of it is not known.
    """
    p95 = standing.p95
    if rule.want == CHEAPEST:
        return standing.measured.cost
    if rule.want == RELIABLE:
        return IntervalEstimate(1 - standing.measured.delivered_pool.share, 1 - standing.high, 1 - standing.low)
    return (
        IntervalEstimate(p95.value, p95.low, p95.high) if p95 and p95.low is not None and p95.high is not None else None
    )


def find_pareto_front(points: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    """Return the keys of points that no other point beats: as small in every coordinate and smaller in one."""

    def beaten(point: tuple[float, ...]) -> bool:
        return any(other != point and all(map(float.__le__, other, point)) for other in points.values())

    return frozenset(key for key, point in points.items() if not beaten(point))


def find_pareto_configs(standings: Iterable[Assessment]) -> frozenset[str]:
    """Return the Pareto front over delivered share, p95, and cost if every cost is known.

    Configurations without a p95 are left out.
    """
    known = {
        standing.measured.key: (standing, standing.p95)
        for standing in standings
        if standing.p95 and standing.measured.tried
    }
    priced = all(standing.measured.cost for standing, _ in known.values())
    points = {
        key: (
            -standing.measured.delivered_pool.share,
            float(p95.value),
            _get_cost(standing.measured) if priced else 0.0,
        )
        for key, (standing, p95) in known.items()
        if p95
    }
    return find_pareto_front(points)


def compute_cost_ratio(
    costs: float, squares: float, *, with_pass: float, passed: int, tried: int
) -> IntervalEstimate | None:
    """Return the dollars per pass with their interval, by the delta method on the logarithm.

    Args:
        costs: The sum of the costs of all trials.
        squares: The sum of their squares.
        with_pass: The sum of the costs of trials that passed.
        passed: The number of passes.
        tried: The number of trials.

    Returns:
        The estimate; None if nothing passed or nothing was paid.
    """
    if not passed or costs <= 0 or not tried:
        return None
    value = costs / passed
    spread = squares - 2 * value * with_pass + value**2 * passed
    error = math.sqrt(max(spread, 0.0)) / costs
    return IntervalEstimate(value, value * math.exp(-Z * error), value * math.exp(Z * error))


def count_trials_to_separate(ahead: IntervalEstimate, behind: IntervalEstimate, trials: int) -> int | None:
    """Return how many more trials of each would separate two intervals at the figures observed.

    The widths shrink with the square root of the number. None means that the figures are equal.
    """
    gap = behind.value - ahead.value
    if gap <= 0:
        return None
    reach = (ahead.high - ahead.value) + (behind.value - behind.low)
    return max(0, math.ceil(trials * (reach / gap) ** 2) - trials)


def compute_cost_difference(
    first: IntervalEstimate, second: IntervalEstimate, *, comparisons: int = 1
) -> IntervalEstimate:
    """Return the second figure less the first, with the simultaneous interval of so many comparisons.

    Both figures are independent.
    """

    def spread(estimate: IntervalEstimate) -> float:
        return (
            estimate.value * math.log(estimate.high / estimate.low) / 2
            if estimate.low > 0
            else estimate.high - estimate.value
        )

    value, reach = second.value - first.value, math.hypot(spread(first), spread(second))
    reach *= float(ndtri(1 - ALPHA / comparisons / 2)) / Z
    return IntervalEstimate(value, value - reach, value + reach)


def _build_sort_key(standing: Assessment, rule: DecisionRule) -> tuple[int, bool, float, float]:
    hopeless = standing.state == OPEN and not _would_lift(standing, rule)
    return _STATE_ORDER.index(standing.state), hopeless, _get_target_value(standing, rule), -standing.low


def _would_lift(standing: Assessment, rule: DecisionRule) -> bool:
    """Return whether more trials, at the rate and the times observed, would let an open configuration qualify."""
    limit, p95 = rule.within_ms, standing.p95
    in_time = limit is None or p95 is None or p95.value <= limit
    return standing.state == OPEN and standing.shortfall is not None and in_time


def _get_target_value(standing: Assessment, rule: DecisionRule) -> float:
    """Return the figure that is to be smallest, also if a bound of it is open; infinite if it is not known."""
    if not standing.measured.tried:
        return math.inf
    if rule.want == FASTEST:
        return standing.p95.value if standing.p95 else math.inf
    figure = get_target_figure(standing, rule)
    return figure.value if figure else math.inf


def _get_cost(measured: MeasuredConfig) -> float:
    return measured.cost.value if measured.cost else 0.0


def _decide_verdict(
    able: list[Assessment], standings: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, str, AdditionalTrials | None]:
    if not able:
        return NO_CANDIDATE, *_describe_no_candidate(standings, rule)
    leader, name = able[0], able[0].measured.label
    if len(able) == 1:
        outlook_text, more = _find_possible_rivals(leader, standings, rule)
        return ONLY_CANDIDATE, f"Only {name} qualifies.{outlook_text}", more
    best = get_target_figure(leader, rule)
    near = [
        (standing, other)
        for standing in able[1:]
        if (other := get_target_figure(standing, rule)) and best and other.low <= best.high
    ]
    if not near or not best:
        sentence = f"{name} is {rule.goal} of {len(able)} that qualify, and its interval lies apart from theirs."
        return CLEAR_LEADER, sentence, None
    rival, other = near[0]
    return UNCLEAR_LEADER, *_describe_overlap((leader, best), (rival, other))


def _describe_overlap(
    leader: tuple[Assessment, IntervalEstimate], rival: tuple[Assessment, IntervalEstimate]
) -> tuple[str, AdditionalTrials | None]:
    (ahead, best), (behind, rival_figure) = leader, rival
    trials = min(standing.measured.answered for standing in (ahead, behind))
    needed = count_trials_to_separate(best, rival_figure, trials)
    scenarios = len(ahead.measured.delivered_samples)
    trials_each = math.ceil(needed / scenarios) if needed else 0
    more = (
        AdditionalTrials((ahead, behind), TrialShortfall(tuple(range(scenarios)), trials_each)) if trials_each else None
    )
    advice = (
        f"{more.total:,} more trials of each would decide it"
        if more
        else "their figures are equal, so more trials may not decide it"
    )
    sentence = (
        f"No clear winner: {ahead.measured.label} is ahead, but its interval overlaps with that of "
        f"{behind.measured.label}; {advice}."
    )
    return sentence, more


def _describe_no_candidate(
    standings: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, AdditionalTrials | None]:
    """Return the sentence on the best candidate and what it lacks, and the trials that would decide."""
    begun = "No clear winner: no configuration qualifies."
    tried = [standing for standing in standings if standing.measured.tried]
    if not tried:
        goal = format_rounded(rule.success)
        return (
            f"{begun} {count_passes_without_failure(rule.target)} passes without a failure are needed for {goal} %.",
            None,
        )
    closest = tried[0]
    if rule.want == CHEAPEST and not any(standing.measured.cost for standing in tried):
        return f"{begun} {_describe_missing_price(tried)}", None
    lacks = " ".join(reason.sentence for reason in closest.reasons)
    if not _would_lift(closest, rule):
        pronoun = "it" if len(tried) == 1 else f"any of the {len(tried)} that were tried"
        lacks = f"{lacks} More trials at the observed rates and times would not make {pronoun} qualify."
    return (
        f"{begun} {closest.measured.label} comes closest to being the {rule.goal}. {lacks}",
        _build_additional_trials(closest),
    )


def _describe_missing_price(tried: list[Assessment]) -> str:
    pronoun = "the one" if len(tried) == 1 else f"any of the {len(tried)}"
    return (
        f"No price is known of {pronoun} that was measured, so none can be called cheapest. A price that its "
        f"provider does not name can be added to {PRICES_FILE}; or ask for the fastest or the most reliable."
    )


def _build_additional_trials(standing: Assessment) -> AdditionalTrials | None:
    lacking = standing.shortfall if standing.state == OPEN else None
    return AdditionalTrials((standing,), lacking) if lacking and lacking.each else None


def _find_possible_rivals(
    leader: Assessment, standings: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, AdditionalTrials | None]:
    undecided = [standing for standing in standings if standing.state == OPEN]
    better = [standing for standing in undecided if _get_target_value(standing, rule) < _get_target_value(leader, rule)]
    if not better:
        return "", None
    word = {FASTEST: "faster", CHEAPEST: "cheaper"}.get(rule.want, "more reliable")
    lifted = _would_lift(better[0], rule)
    more = _build_additional_trials(better[0]) if lifted else None
    sentence = "; more trials at its observed rate and times would not make it qualify"
    if lifted:
        sentence = f": {more.total:,} more trials would decide it" if more else ""
    return f" {better[0].measured.label} would be {word} and is not decided yet{sentence}.", more
