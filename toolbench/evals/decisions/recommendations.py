"""Toolbench's recommendations by named rules, of which the first that holds decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.evals.decisions.assessments import RELIABLE, DecisionRule, MeasuredConfig
from toolbench.evals.decisions.requirements import assess_config, describe_shortfall
from toolbench.evals.statistics import count_answers_until_closed
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import PooledRate, pool_samples
from toolbench.evals.statistics.rounding import format_rounded

YES, NO, CONDITIONAL, NOT_APPLICABLE = "Yes", "No", "Conditional", "Not applicable"
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """The results of one profile of a model.

    Attributes:
        passed: The number of trials that passed.
        tried: The number of all trials.
        answered: The number of trials with an answer.
        is_tools_off: Whether tools were off.
        p95_high: The upper bound of p95 in milliseconds; None if it is open or not known.
        limit: The largest p95 permitted, in milliseconds; None for no limit.
        late: The number of passes that do not count as end-to-end successes.
        delivery: The end-to-end successes of all trials by scenario; empty if the scenarios are not known.
        given: The passes of answered trials by scenario; empty if the scenarios are not known.
        scenarios: The names of the scenarios, in the order of `delivery`.
    """

    model: str
    profile: str
    passed: int
    tried: int
    answered: int
    is_tools_off: bool = False
    p95_high: float | None = None
    limit: float | None = None
    late: int = 0
    delivery: tuple[ScenarioSample, ...] = ()
    given: tuple[ScenarioSample, ...] = ()
    scenarios: tuple[str, ...] = ()

    @property
    def delivered(self) -> int:
        """Return the number of end-to-end successes."""
        return self.passed - self.late

    @property
    def parts(self) -> tuple[ScenarioSample, ...]:
        """Return the end-to-end successes by scenario, or as one sample if the scenarios are not known."""
        return self.delivery or (ScenarioSample(self.delivered, self.tried),)

    @property
    def answered_pool(self) -> PooledRate:
        """Return answered success, pooled over scenarios."""
        return pool_samples(self.given or (ScenarioSample(self.passed, self.answered),))

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the ends of the interval of end-to-end success, as fractions."""
        pooled = pool_samples(self.parts)
        return pooled.low, pooled.high

    @property
    def delivered_text(self) -> str:
        """Return end-to-end success as text: successes/trials and the interval in percent."""
        low, high = self.bounds
        return f"{self.delivered}/{self.tried} [{format_rounded(100 * low)}–{format_rounded(100 * high)}]"


@dataclass(frozen=True, slots=True)
class RecommendationRule:
    """A named rule of recommendations.

    Attributes:
        verdict: The verdict if the rule holds: one of YES, NO, CONDITIONAL and NOT_APPLICABLE.
        meaning: The rule in words.
        holds: Returns whether the rule holds for a result and a target, a fraction.
        describe: Returns the reason for the verdict in words, for the same arguments.
    """

    name: str
    verdict: str
    meaning: str
    holds: Callable[[ProfileResult, float], bool]
    describe: Callable[[ProfileResult, float], str]


@dataclass(frozen=True, slots=True)
class ModelRecommendation:
    """The recommendation for a model: a profile and a verdict.

    Attributes:
        result: The results of the recommended profile.
        verdict: One of YES, NO, CONDITIONAL and NOT_APPLICABLE.
        rule: The name of the rule that gave the verdict.
        reason: The reason for the verdict, in words.
        profile_rule: The key of PROFILE_RULES by which the profile was chosen.
        profile_reason: The reason for the profile, in words.
    """

    model: str
    result: ProfileResult
    verdict: str
    rule: str
    reason: str
    profile_rule: str
    profile_reason: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between Toolbench's recommendation and a published one.

    Attributes:
        about: `verdict` or `profile`.
        published: The published value.
        recommended: Toolbench's value.
    """

    about: str
    published: str
    recommended: str
    reason: str


def _is_lost_to_infrastructure(result: ProfileResult, target: float) -> bool:
    has_losses = result.answered < result.tried or result.late > 0
    return has_losses and result.bounds[0] < target <= result.answered_pool.low


def _describe_undecided(result: ProfileResult, target: float) -> str:
    measured = MeasuredConfig(
        result.model, result.profile, result.passed, result.tried, result.answered, late=result.late,
        delivery=result.delivery, given=result.given, scenarios=result.scenarios,
    )  # fmt: skip
    shortfall = assess_config(measured, DecisionRule(RELIABLE, 100 * target, None)).shortfall
    advice = "more trials at this rate would not make it qualify"
    if shortfall:
        advice = f"{describe_shortfall(shortfall, measured)} at this rate would decide it"
    return f"{result.delivered_text} %: {format_rounded(100 * target)} % lies inside, so it is not decided; {advice}."


RECOMMENDATION_RULES: tuple[RecommendationRule, ...] = (
    RecommendationRule(
        "tools-off",
        NOT_APPLICABLE,
        "Tools were off: tool scenarios say nothing about the model.",
        lambda result, target: result.is_tools_off,
        lambda result, target: f"Its tools were off, so {result.passed}/{result.tried} is neither a pass nor a fail.",
    ),
    RecommendationRule(
        "nothing-tried",
        NOT_APPLICABLE,
        "There are no trials.",
        lambda result, target: not result.tried,
        lambda result, target: "It has no trials.",
    ),
    RecommendationRule(
        "below",
        NO,
        "The whole interval of delivered success lies below the target.",
        lambda result, target: result.bounds[1] < target,
        lambda result, target: f"{result.delivered_text} %: all of it below {format_rounded(100 * target)} %.",
    ),
    RecommendationRule(
        "lost",
        CONDITIONAL,
        "The answers are good enough, but too many trials had no answer.",
        _is_lost_to_infrastructure,
        lambda result, target: (
            f"{result.answered - result.passed} of {result.answered} answers failed, but "
            f"{result.tried - result.answered + result.late} of {result.tried} trials had no answer at first."
        ),
    ),
    RecommendationRule(
        "slow",
        CONDITIONAL,
        "The upper bound of p95 lies above the limit; "
        f"it exists from {count_answers_until_closed(0.95, 0)} answers on.",
        lambda result, target: bool(result.limit and result.p95_high and result.p95_high > result.limit),
        lambda result, target: f"Its p95 may be {format_rounded((result.p95_high or 0) / 1000, 1)} s, above the limit.",
    ),
    RecommendationRule(
        "clears",
        YES,
        "The lower bound of delivered success reaches the target.",
        lambda result, target: result.bounds[0] >= target,
        lambda result, target: f"{result.delivered_text} %: the lower bound reaches {format_rounded(100 * target)} %.",
    ),
    RecommendationRule(
        "undecided",
        CONDITIONAL,
        "The target lies inside the interval: more trials are needed.",
        lambda result, target: True,
        _describe_undecided,
    ),
)
PROFILE_RULES = {
    "only": "Only one profile was tried.",
    "apart": "Its interval lies above that of every other profile.",
    "even": "No profile is shown to be better than all others: the default is kept, unless one is better than it.",
}


def recommend(profiles: Sequence[ProfileResult], target: float) -> ModelRecommendation:
    """Return the recommendation for one model.

    Args:
        profiles: The results of the model's profiles, at least one.
        target: The end-to-end success required, as a fraction.
    """
    chosen, profile_rule, profile_reason = _choose_profile(profiles)
    rule = next(rule for rule in RECOMMENDATION_RULES if rule.holds(chosen, target))
    reason = rule.describe(chosen, target)
    return ModelRecommendation(chosen.model, chosen, rule.verdict, rule.name, reason, profile_rule, profile_reason)


def list_disagreements(advice: ModelRecommendation, *, recommended: str, profile: str) -> tuple[Disagreement, ...]:
    """Return the differences between a recommendation and a published one.

    Args:
        advice: Toolbench's recommendation.
        recommended: The published verdict, verbatim.
        profile: The published profile.
    """
    disagreements = []
    if parse_verdict(recommended) != advice.verdict:
        reason = f"Rule {advice.rule}: {advice.reason}"
        disagreements.append(Disagreement("verdict", recommended, advice.verdict, reason))
    if profile != advice.result.profile:
        reason = f"Rule {advice.profile_rule}: {advice.profile_reason}"
        disagreements.append(Disagreement("profile", profile, advice.result.profile, reason))
    return tuple(disagreements)


def parse_verdict(words: str) -> str:
    """Return YES, NO or CONDITIONAL if the published words begin with it; otherwise the words unchanged."""
    return next((verdict for verdict in (YES, NO, CONDITIONAL) if words.startswith(verdict)), words)


def has_overlap(first: ProfileResult, second: ProfileResult) -> bool:
    """Return whether the intervals of end-to-end success of two profiles overlap."""
    (low, high), (other_low, other_high) = first.bounds, second.bounds
    return low <= other_high and other_low <= high


def _choose_profile(profiles: Sequence[ProfileResult]) -> tuple[ProfileResult, str, str]:
    """Return the recommended profile, the key of its rule in PROFILE_RULES, and the reason in words."""
    if len(profiles) == 1:
        return profiles[0], "only", PROFILE_RULES["only"]
    best = max(profiles, key=lambda profile: (profile.bounds[0], profile.profile == DEFAULT_PROFILE))
    if not any(has_overlap(best, profile) for profile in profiles if profile is not best):
        return best, "apart", f"{best.delivered_text} % lies above {_describe_others(profiles, best)}."
    chosen = next((profile for profile in _list_unbeaten(profiles) if profile.profile == DEFAULT_PROFILE), best)
    others = _describe_others(profiles, chosen)
    return chosen, "even", f"{chosen.delivered_text} % overlaps {others}: no profile is shown to be better."


def _describe_others(profiles: Sequence[ProfileResult], chosen: ProfileResult) -> str:
    return ", ".join(f"{profile.profile} {profile.delivered_text}" for profile in profiles if profile is not chosen)


def _list_unbeaten(profiles: Sequence[ProfileResult]) -> list[ProfileResult]:
    """Return the profiles whose interval does not lie below that of another profile."""
    return [profile for profile in profiles if not any(other.bounds[0] > profile.bounds[1] for other in profiles)]
