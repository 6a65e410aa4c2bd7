"""Recommendation of a profile and a verdict for each model.

The first rule of RECOMMENDATION_RULES that holds gives the verdict.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.evals.decisions.assessments import RELIABLE, DecisionRule, MeasuredConfig
from toolbench.evals.decisions.requirements import assess_config, describe_shortfall
from toolbench.evals.statistics import count_more_answers_for_bounds
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
        p95_high_ms: The upper bound of p95 in milliseconds; None if it is open or not known.
        p95_limit_ms: The largest p95 permitted, in milliseconds; None for no limit.
        retried_passes: The number of passes after a user retried an errored trial, which are no end-to-end successes.
        end_to_end_by_scenario: The end-to-end successes and trials of each scenario; empty if the scenarios are not
            known.
        answered_by_scenario: The passes and answered trials of each scenario; empty if the scenarios are not known.
        scenarios: The names of the scenarios, in the order of `end_to_end_by_scenario`.
    """

    model: str
    profile: str
    passed: int
    tried: int
    answered: int
    is_tools_off: bool = False
    p95_high_ms: float | None = None
    p95_limit_ms: float | None = None
    retried_passes: int = 0
    end_to_end_by_scenario: tuple[ScenarioSample, ...] = ()
    answered_by_scenario: tuple[ScenarioSample, ...] = ()
    scenarios: tuple[str, ...] = ()

    @property
    def end_to_end_successes(self) -> int:
        """Return the number of end-to-end successes."""
        return self.passed - self.retried_passes

    @property
    def end_to_end_samples(self) -> tuple[ScenarioSample, ...]:
        """Return the end-to-end successes by scenario, or as one sample if the scenarios are not known."""
        return self.end_to_end_by_scenario or (ScenarioSample(self.end_to_end_successes, self.tried),)

    @property
    def answered_pool(self) -> PooledRate:
        """Return answered success, pooled over scenarios."""
        return pool_samples(self.answered_by_scenario or (ScenarioSample(self.passed, self.answered),))

    @property
    def end_to_end_interval(self) -> tuple[float, float]:
        """Return the ends of the interval of end-to-end success, as fractions."""
        pooled = pool_samples(self.end_to_end_samples)
        return pooled.low, pooled.high

    @property
    def is_slow(self) -> bool:
        """Return whether the upper bound of p95 lies above the limit; False without a limit or a bound."""
        return bool(self.p95_limit_ms and self.p95_high_ms and self.p95_high_ms > self.p95_limit_ms)

    @property
    def end_to_end_text(self) -> str:
        """Return end-to-end success as text: successes/trials and the interval in percent."""
        low, high = self.end_to_end_interval
        return f"{self.end_to_end_successes}/{self.tried} [{format_rounded(100 * low)}–{format_rounded(100 * high)}]"


@dataclass(frozen=True, slots=True)
class RecommendationRule:
    """A named rule of recommendations.

    Attributes:
        verdict: The verdict if the rule holds: one of YES, NO, CONDITIONAL and NOT_APPLICABLE.
        meaning: The rule in words.
        holds: Takes the results of a profile and the target as a fraction; returns whether the rule applies.
        describe: Takes the same arguments; returns the reason for the verdict in words.
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


def _would_pass_without_errors(result: ProfileResult, target: float) -> bool:
    has_errors = result.answered < result.tried or result.retried_passes > 0
    return has_errors and result.end_to_end_interval[0] < target <= result.answered_pool.low


def _describe_undecided(result: ProfileResult, target: float) -> str:
    measured = MeasuredConfig(
        result.model, result.profile, result.passed, result.tried, result.answered,
        retried_passes=result.retried_passes, end_to_end_by_scenario=result.end_to_end_by_scenario,
        answered_by_scenario=result.answered_by_scenario, scenarios=result.scenarios,
    )  # fmt: skip
    shortfall = assess_config(measured, DecisionRule(RELIABLE, 100 * target, None)).shortfall
    advice_text = "more trials at this rate would not make it qualify"
    if shortfall:
        advice_text = f"{describe_shortfall(shortfall, measured)} at this rate would decide it"
    return (
        f"{result.end_to_end_text} %: the target of {format_rounded(100 * target)} % lies inside the interval, so more "
        f"trials are needed; {advice_text}."
    )


RECOMMENDATION_RULES: tuple[RecommendationRule, ...] = (
    RecommendationRule(
        "tools-off",
        NOT_APPLICABLE,
        "Tools were off: tool scenarios say nothing about the model.",
        lambda result, target: result.is_tools_off,
        lambda result, target: f"Its tools were off, so {result.passed}/{result.tried} is neither a pass nor a fail.",
    ),
    RecommendationRule(
        "no-trials",
        NOT_APPLICABLE,
        "There are no trials.",
        lambda result, target: not result.tried,
        lambda result, target: "It has no trials.",
    ),
    RecommendationRule(
        "below",
        NO,
        "The whole interval of end-to-end success lies below the target.",
        lambda result, target: result.end_to_end_interval[1] < target,
        lambda result, target: f"{result.end_to_end_text} %: all of it below {format_rounded(100 * target)} %.",
    ),
    RecommendationRule(
        "infrastructure",
        CONDITIONAL,
        "The answers are good enough, but too many trials ended with an error or at the deadline.",
        _would_pass_without_errors,
        lambda result, target: (
            f"{result.answered - result.passed} of {result.answered} answers failed, but "
            f"{result.tried - result.answered + result.retried_passes} of {result.tried} trials ended with an error or "
            "at the deadline, retried ones included."
        ),
    ),
    RecommendationRule(
        "slow",
        CONDITIONAL,
        "The upper bound of p95 lies above the limit; "
        f"it exists from {count_more_answers_for_bounds(0.95, 0)} answers on.",
        lambda result, target: result.is_slow,
        lambda result, target: (
            f"The upper bound of p95 is {format_rounded((result.p95_high_ms or 0) / 1000, 1)} s, above the limit."
        ),
    ),
    RecommendationRule(
        "reaches-target",
        YES,
        "The lower bound of end-to-end success reaches the target.",
        lambda result, target: result.end_to_end_interval[0] >= target,
        lambda result, target: f"{result.end_to_end_text} %: the lower bound reaches {format_rounded(100 * target)} %.",
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
    "only": "There are trials of only one profile.",
    "best-interval": "Its interval lies above that of every other profile.",
    "overlapping": (
        "No interval lies above all others: the default profile is recommended, or the profile with the highest lower "
        "bound if another profile's interval lies above that of the default."
    ),
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


def list_disagreements(
    recommendation: ModelRecommendation, *, published_verdict: str, published_profile: str
) -> tuple[Disagreement, ...]:
    """Return the differences between a recommendation and a published one.

    Args:
        recommendation: Toolbench's recommendation.
        published_verdict: The published verdict, verbatim.
        published_profile: The published profile.
    """
    disagreements = []
    if normalise_verdict(published_verdict) != recommendation.verdict:
        reason = f"Rule {recommendation.rule}: {recommendation.reason}"
        disagreements.append(Disagreement("verdict", published_verdict, recommendation.verdict, reason))
    profile = recommendation.result.profile
    if published_profile != profile:
        reason = f"Rule {recommendation.profile_rule}: {recommendation.profile_reason}"
        disagreements.append(Disagreement("profile", published_profile, profile, reason))
    return tuple(disagreements)


def normalise_verdict(text: str) -> str:
    """Return YES, NO or CONDITIONAL if a published text begins with it; otherwise the text unchanged."""
    return next((verdict for verdict in (YES, NO, CONDITIONAL) if text.startswith(verdict)), text)


def has_overlap(first: ProfileResult, second: ProfileResult) -> bool:
    """Return whether the intervals of end-to-end success of two profiles overlap."""
    (low, high), (other_low, other_high) = first.end_to_end_interval, second.end_to_end_interval
    return low <= other_high and other_low <= high


def _choose_profile(profiles: Sequence[ProfileResult]) -> tuple[ProfileResult, str, str]:
    """Return the recommended profile, the key of its rule in PROFILE_RULES, and the reason in words."""
    if len(profiles) == 1:
        return profiles[0], "only", PROFILE_RULES["only"]
    best = max(profiles, key=lambda profile: (profile.end_to_end_interval[0], profile.profile == DEFAULT_PROFILE))
    if not any(has_overlap(best, profile) for profile in profiles if profile is not best):
        return best, "best-interval", f"{best.end_to_end_text} % lies above {_describe_others(profiles, best)}."
    chosen = next((profile for profile in _list_unbeaten(profiles) if profile.profile == DEFAULT_PROFILE), best)
    others = _describe_others(profiles, chosen)
    return chosen, "overlapping", f"{chosen.end_to_end_text} % overlaps {others}: no profile is shown to be better."


def _describe_others(profiles: Sequence[ProfileResult], chosen: ProfileResult) -> str:
    return ", ".join(f"{profile.profile} {profile.end_to_end_text}" for profile in profiles if profile is not chosen)


def _list_unbeaten(profiles: Sequence[ProfileResult]) -> list[ProfileResult]:
    """Return the profiles whose interval does not lie below that of another profile."""
    highest_low = max(profile.end_to_end_interval[0] for profile in profiles)
    return [profile for profile in profiles if profile.end_to_end_interval[1] >= highest_low]
