"""The choice among configurations by a decision rule: leader, Pareto front and additional trials."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from toolbench.evals.decisions.assessments import (
    CHEAPEST,
    FASTEST,
    OPEN,
    REFUSED,
    RELIABLE,
    TO_CONFIRM,
    Assessment,
    DecisionRule,
    IntervalEstimate,
    MeasuredConfig,
    TrialShortfall,
)
from toolbench.evals.decisions.requirements import PRICE_ADVICE, assess_config, count_passes_without_failure
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
    """Additional trials with which the rule could reach a decision.

    Attributes:
        assessments: The configurations that need them, at least one.
        shortfall: The trials that each of these configurations needs.
    """

    assessments: tuple[Assessment, ...]
    shortfall: TrialShortfall

    @property
    def per_scenario(self) -> int:
        """Return the number of additional trials of each scenario that needs some."""
        return self.shortfall.per_scenario

    @property
    def total(self) -> int:
        """Return the number of additional trials of one configuration."""
        return self.shortfall.total

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the names of the scenarios that need the trials; empty if they are not known."""
        names = self.assessments[0].measured.scenarios
        return tuple(names[index] for index in self.shortfall.scenario_indices) if names else ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of applying a rule to all configurations.

    Attributes:
        assessments: The assessments of all configurations, the best first.
        front: The keys of the configurations on the Pareto front of the qualified ones, or of those to be confirmed if
            none qualifies.
        verdict: NO_CANDIDATE, if no configuration meets the rule; ONLY_CANDIDATE, if only the leader qualifies;
            CLEAR_LEADER, if several qualify and the leader's interval of the figure that the rule minimises overlaps
            with none of theirs; UNCLEAR_LEADER, if it overlaps with one; CONFIRM_LEADER, if none qualifies and the
            leader meets the rule, but has to be confirmed on new trials.
        leader: The best configuration; None with NO_CANDIDATE.
        sentence: The decision in words.
        chosen_among: The number of configurations compared.
        more: The additional trials; None if none are needed, if no number of trials would help, or if no
            configuration was tried.
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
    def needs_confirmation(self) -> bool:
        """Return whether the leader needs a confirmation run on new trials.

        A leader needs one if it was chosen among several configurations, if some of its trials were planned or added
        after results were seen, or if its cells used sequential stopping.
        """
        leader = self.leader
        return leader is not None and (
            self.chosen_among > 1 or leader.state == TO_CONFIRM or leader.measured.has_planned_trials
        )


def choose_config(measured: Iterable[MeasuredConfig], rule: DecisionRule) -> Decision:
    """Return the decision of a rule among configurations.

    The assessments are sorted by state: qualified, to be confirmed, open, refused. Within a state they are sorted by
    the rule's goal; but open ones that more trials cannot make qualify come after the other open ones.
    """
    assessments = tuple(
        sorted(
            (assess_config(config, rule) for config in measured),
            key=lambda assessment: _build_sort_key(assessment, rule),
        )
    )
    qualified = [assessment for assessment in assessments if assessment.state == "qualified"]
    unconfirmed = [assessment for assessment in assessments if assessment.state == TO_CONFIRM]
    if not qualified and unconfirmed:
        front = find_pareto_configs(unconfirmed)
        sentence = f"{unconfirmed[0].measured.label} meets the rule, but has to be confirmed on new trials."
        return Decision(rule, assessments, front, CONFIRM_LEADER, unconfirmed[0], sentence, len(assessments))
    front = find_pareto_configs(qualified)
    leader = qualified[0] if qualified else None
    verdict, sentence, more = _decide_verdict(qualified, assessments, rule)
    return Decision(rule, assessments, front, verdict, leader, sentence, len(assessments), more)


def find_target_figure(assessment: Assessment, rule: DecisionRule) -> IntervalEstimate | None:
    """Return the figure that the rule minimises, with its interval.

    Returns:
        US dollars per end-to-end success (cheapest), the end-to-end failure rate (reliable), or p95 in milliseconds
        (fastest); None if the figure is not known or one of its bounds is open.
    """
    p95 = assessment.p95
    if rule.want == CHEAPEST:
        return assessment.measured.cost
    if rule.want == RELIABLE:
        return IntervalEstimate(1 - assessment.measured.end_to_end_pool.share, 1 - assessment.high, 1 - assessment.low)
    return (
        IntervalEstimate(p95.value, p95.low, p95.high) if p95 and p95.low is not None and p95.high is not None else None
    )


def find_pareto_front(points: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    """Return the keys of the points that no other point dominates; smaller coordinates are better."""

    def is_dominated(point: tuple[float, ...]) -> bool:
        return any(other != point and all(map(float.__le__, other, point)) for other in points.values())

    return frozenset(key for key, point in points.items() if not is_dominated(point))


def find_pareto_configs(assessments: Iterable[Assessment]) -> frozenset[str]:
    """Return the keys of the configurations on the Pareto front over end-to-end success and p95.

    Configurations without p95 or without trials are omitted. Cost is a third criterion if it is known for all others.
    """
    comparable = {
        assessment.measured.key: (assessment, assessment.p95)
        for assessment in assessments
        if assessment.p95 and assessment.measured.tried
    }
    is_every_cost_known = all(assessment.measured.cost for assessment, _ in comparable.values())
    points = {
        key: (
            -assessment.measured.end_to_end_pool.share,
            float(p95.value),
            assessment.measured.cost.value if assessment.measured.cost and is_every_cost_known else 0.0,
        )
        for key, (assessment, p95) in comparable.items()
        if p95
    }
    return find_pareto_front(points)


def compute_cost_ratio(
    cost_sum: float, square_sum: float, *, passed_cost_sum: float, passed: int, tried: int
) -> IntervalEstimate | None:
    """Return US dollars per pass with its 95 % interval, by the delta method on the logarithm.

    Args:
        cost_sum: The sum of the costs of all trials, in US dollars.
        square_sum: The sum of the squares of these costs.
        passed_cost_sum: The sum of the costs of trials that passed, in US dollars.
        passed: The number of passes.
        tried: The number of trials.

    Returns:
        The estimate; None if no trial passed. The figure and its bounds are 0 if the trials cost nothing.
    """
    if not passed or not tried:
        return None
    if cost_sum <= 0:
        return IntervalEstimate(0.0, 0.0, 0.0)
    value = cost_sum / passed
    spread = square_sum - 2 * value * passed_cost_sum + value**2 * passed
    standard_error = math.sqrt(max(spread, 0.0)) / cost_sum
    return IntervalEstimate(value, value * math.exp(-Z * standard_error), value * math.exp(Z * standard_error))


def count_trials_to_separate(smaller: IntervalEstimate, larger: IntervalEstimate, trials: int) -> int | None:
    """Return how many more trials of each side would separate two intervals at the observed figures.

    The widths are assumed to decrease with the square root of the number of trials.

    Args:
        smaller: The smaller figure.
        larger: The larger figure.
        trials: The number of trials of each side so far.

    Returns:
        The number of trials; None if `larger` is not larger than `smaller`.
    """
    gap = larger.value - smaller.value
    if gap <= 0:
        return None
    half_widths = (smaller.high - smaller.value) + (larger.value - larger.low)
    return max(0, math.ceil(trials * (half_widths / gap) ** 2) - trials)


def compute_cost_difference(
    first: IntervalEstimate, second: IntervalEstimate, *, comparisons: int = 1
) -> IntervalEstimate:
    """Return the second figure minus the first, with its interval.

    Args:
        first: The first figure, a cost with a 95 % interval.
        second: The second figure, which is independent of the first.
        comparisons: The number of comparisons whose intervals have to hold simultaneously at 95 %.
    """

    # The interval of a cost is symmetric on the logarithmic scale; the delta method gives its half width in dollars.
    def compute_half_width(estimate: IntervalEstimate) -> float:
        return (
            estimate.value * math.log(estimate.high / estimate.low) / 2
            if estimate.low > 0
            else estimate.high - estimate.value
        )

    value = second.value - first.value
    half_width = math.hypot(compute_half_width(first), compute_half_width(second))
    half_width *= float(ndtri(1 - ALPHA / comparisons / 2)) / Z
    return IntervalEstimate(value, value - half_width, value + half_width)


def _build_sort_key(assessment: Assessment, rule: DecisionRule) -> tuple[int, bool, float, float]:
    is_hopeless = assessment.state == OPEN and not _can_qualify(assessment, rule)
    return _STATE_ORDER.index(assessment.state), is_hopeless, _compute_target_value(assessment, rule), -assessment.low


def _can_qualify(assessment: Assessment, rule: DecisionRule) -> bool:
    """Return whether a configuration is open, and more trials at the observed figures would let it qualify."""
    limit, p95 = rule.within_ms, assessment.p95
    is_in_time = limit is None or p95 is None or p95.value <= limit
    return assessment.state == OPEN and assessment.shortfall is not None and is_in_time


def _compute_target_value(assessment: Assessment, rule: DecisionRule) -> float:
    """Return the figure that the rule minimises, even if a bound is open; infinite if it is not known."""
    if not assessment.measured.tried:
        return math.inf
    if rule.want == FASTEST:
        return assessment.p95.value if assessment.p95 else math.inf
    figure = find_target_figure(assessment, rule)
    return figure.value if figure else math.inf


def _decide_verdict(
    qualified: list[Assessment], assessments: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, str, AdditionalTrials | None]:
    """Return the verdict, its sentence and the additional trials, as in Decision."""
    if not qualified:
        return NO_CANDIDATE, *_describe_no_candidate(assessments, rule)
    leader, name = qualified[0], qualified[0].measured.label
    if len(qualified) == 1:
        rival_text, more = _describe_possible_rival(leader, assessments, rule)
        return ONLY_CANDIDATE, f"Only {name} qualifies.{rival_text}", more
    leader_figure = find_target_figure(leader, rule)
    overlapping = [
        (assessment, figure)
        for assessment in qualified[1:]
        if (figure := find_target_figure(assessment, rule)) and leader_figure and figure.low <= leader_figure.high
    ]
    if not overlapping or not leader_figure:
        sentence = f"{name} is {rule.goal} of {len(qualified)} that qualify, and its interval does not overlap theirs."
        return CLEAR_LEADER, sentence, None
    return UNCLEAR_LEADER, *_describe_overlap((leader, leader_figure), overlapping[0])


def _describe_overlap(
    first: tuple[Assessment, IntervalEstimate], second: tuple[Assessment, IntervalEstimate]
) -> tuple[str, AdditionalTrials | None]:
    (leader, leader_figure), (rival, rival_figure) = first, second
    trials = min(assessment.measured.answered for assessment in (leader, rival))
    needed = count_trials_to_separate(leader_figure, rival_figure, trials)
    scenario_count = len(leader.measured.end_to_end_samples)
    per_scenario = math.ceil(needed / scenario_count) if needed else 0
    shortfall = TrialShortfall(tuple(range(scenario_count)), per_scenario)
    more = AdditionalTrials((leader, rival), shortfall) if per_scenario else None
    advice = (
        f"{more.total:,} more trials of each would decide it"
        if more
        else "their figures are equal, so more trials may not decide it"
    )
    sentence = (
        f"No clear winner: {leader.measured.label} is ahead, but its interval overlaps with that of "
        f"{rival.measured.label}; {advice}."
    )
    return sentence, more


def _describe_no_candidate(
    assessments: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, AdditionalTrials | None]:
    """Return a text about the best configuration and the reasons against it, and the additional trials."""
    opening = "No clear winner: no configuration qualifies."
    tried = [assessment for assessment in assessments if assessment.measured.tried]
    if not tried:
        needed = count_passes_without_failure(rule.target)
        return f"{opening} {needed} passes without a failure are needed for {format_rounded(rule.success)} %.", None
    closest = tried[0]
    if rule.want == CHEAPEST and not any(assessment.measured.cost for assessment in tried):
        return f"{opening} {_describe_missing_price(tried)}", None
    reasons = " ".join(reason.sentence for reason in closest.reasons)
    if not _can_qualify(closest, rule):
        configs = "it" if len(tried) == 1 else f"any of the {len(tried)} that were tried"
        reasons = f"{reasons} More trials at the observed rates and times would not make {configs} qualify."
    return (
        f"{opening} {closest.measured.label} comes closest to being the {rule.goal}. {reasons}",
        _build_additional_trials(closest),
    )


def _describe_missing_price(tried: list[Assessment]) -> str:
    configs = "the measured configuration" if len(tried) == 1 else f"any of the {len(tried)} measured configurations"
    return (
        f"No price is known for {configs}, so the cheapest one cannot be determined. If the provider reports no cost, "
        f"{PRICE_ADVICE}; or choose the goal fastest or most reliable."
    )


def _build_additional_trials(assessment: Assessment) -> AdditionalTrials | None:
    shortfall = assessment.shortfall if assessment.state == OPEN else None
    return AdditionalTrials((assessment,), shortfall) if shortfall and shortfall.per_scenario else None


def _describe_possible_rival(
    leader: Assessment, assessments: tuple[Assessment, ...], rule: DecisionRule
) -> tuple[str, AdditionalTrials | None]:
    undecided = [assessment for assessment in assessments if assessment.state == OPEN]
    better = [
        assessment
        for assessment in undecided
        if _compute_target_value(assessment, rule) < _compute_target_value(leader, rule)
    ]
    if not better:
        return "", None
    comparative = {FASTEST: "faster", CHEAPEST: "cheaper"}.get(rule.want, "more reliable")
    can_qualify = _can_qualify(better[0], rule)
    more = _build_additional_trials(better[0]) if can_qualify else None
    advice = "; more trials at its observed rate and times would not make it qualify"
    if can_qualify:
        advice = f": {more.total:,} more trials would decide it" if more else ""
    return f" {better[0].measured.label} would be {comparative} and is not decided yet{advice}.", more
