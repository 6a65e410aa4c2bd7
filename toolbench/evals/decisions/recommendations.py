"""Toolbench's recommendations: named rules of which the first that holds decides.

They are compared with published recommendations, with a reason for each difference.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from toolbench.evals.decisions.requirements import RELIABLE, DecisionRule, MeasuredConfig, assess_config, in_words
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
        tried: All trials.
        answered: Trials with an answer.
        is_tools_off: Whether tools were off.
        p95_high: The upper bound of p95 in milliseconds; None if it is open or not known.
        limit: The largest p95 permitted, in milliseconds; None for no limit.
        late: Passes that were not delivered.
        delivery: Delivered passes of all trials by scenario; () if not known.
        given: Passes of answered trials by scenario; () if not known.
        scenarios: The scenarios' names, in the same order.
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
        """Return the passes that were delivered."""
        return self.passed - self.late

    @property
    def parts(self) -> tuple[ScenarioSample, ...]:
        """Return the delivered passes by scenario, or all together as one if the scenarios are not known."""
        return self.delivery or (ScenarioSample(self.delivered, self.tried),)

    @property
    def answered_pool(self) -> PooledRate:
        """Return answered success, pooled over scenarios."""
        return pool_samples(self.given or (ScenarioSample(self.passed, self.answered),))

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the ends of the interval of delivered success, as fractions."""
        pooled = pool_samples(self.parts)
        return pooled.low, pooled.high

    @property
    def delivered_text(self) -> str:
        """Return delivered success as text: passes/trials and the interval in percent."""
        low, high = self.bounds
        return f"{self.delivered}/{self.tried} [{format_rounded(100 * low)}–{format_rounded(100 * high)}]"


@dataclass(frozen=True, slots=True)
class RecommendationRule:
    """A named rule; `holds` and `says`, which words the reason, take the target as a fraction."""

    name: str
    verdict: str
    means: str
    holds: Callable[[ProfileResult, float], bool]
    describe: Callable[[ProfileResult, float], str]


@dataclass(frozen=True, slots=True)
class ModelRecommendation:
    """The recommendation for a model: a profile and a verdict, each with its rule and reason."""

    model: str
    tried: ProfileResult
    verdict: str
    rule: str
    reason: str
    profile_rule: str
    profile_reason: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference from a published recommendation; `about` is `verdict` or `profile`."""

    about: str
    theirs: str
    ours: str
    reason: str


def _is_lost_to_infrastructure(tried: ProfileResult, target: float) -> bool:
    short = tried.answered < tried.tried or tried.late > 0
    return short and tried.bounds[0] < target <= tried.answered_pool.low


def _describe_undecided(tried: ProfileResult, target: float) -> str:
    measured = MeasuredConfig(
        tried.model, tried.profile, tried.passed, tried.tried, tried.answered, late=tried.late,
        delivery=tried.delivery, given=tried.given, scenarios=tried.scenarios,
    )  # fmt: skip
    lacking = assess_config(measured, DecisionRule(RELIABLE, 100 * target, None)).shortfall
    sentence = "more trials at this rate would not make it qualify"
    if lacking:
        sentence = f"{in_words(lacking, measured)} at this rate would decide it"
    return f"{tried.delivered_text} %: {format_rounded(100 * target)} % lies inside, so it is not decided; {sentence}."


RECOMMENDATION_RULES: tuple[RecommendationRule, ...] = (
    RecommendationRule(
        "tools-off",
        NOT_APPLICABLE,
        "Tools were off: tool scenarios say nothing about the model.",
        lambda tried, target: tried.is_tools_off,
        lambda tried, target: f"Its tools were off, so {tried.passed}/{tried.tried} is neither a pass nor a fail.",
    ),
    RecommendationRule(
        "nothing-tried",
        NOT_APPLICABLE,
        "Nothing was tried.",
        lambda tried, target: not tried.tried,
        lambda tried, target: "Nothing of it was tried.",
    ),
    RecommendationRule(
        "below",
        NO,
        "The whole interval of delivered success lies below the target.",
        lambda tried, target: tried.bounds[1] < target,
        lambda tried, target: f"{tried.delivered_text} %: all of it below {format_rounded(100 * target)} %.",
    ),
    RecommendationRule(
        "lost",
        CONDITIONAL,
        "Answers are good enough, but too many trials brought none.",
        _is_lost_to_infrastructure,
        lambda tried, target: (
            f"{tried.answered - tried.passed} of {tried.answered} answers failed, but "
            f"{tried.tried - tried.answered + tried.late} of {tried.tried} trials brought none when first asked."
        ),
    ),
    RecommendationRule(
        "slow",
        CONDITIONAL,
        "The upper bound of p95 lies above the limit; "
        f"it exists from {count_answers_until_closed(0.95, 0)} answers on.",
        lambda tried, target: bool(tried.limit and tried.p95_high and tried.p95_high > tried.limit),
        lambda tried, target: f"Its p95 may be {format_rounded((tried.p95_high or 0) / 1000, 1)} s, above the limit.",
    ),
    RecommendationRule(
        "clears",
        YES,
        "The lower bound of delivered success reaches the target.",
        lambda tried, target: tried.bounds[0] >= target,
        lambda tried, target: f"{tried.delivered_text} %: the lower bound reaches {format_rounded(100 * target)} %.",
    ),
    RecommendationRule(
        "undecided",
        CONDITIONAL,
        "The target lies inside the interval: more trials have to tell.",
        lambda tried, target: True,
        _describe_undecided,
    ),
)
PROFILE_RULES = {
    "only": "One profile was tried, so there is nothing to prefer.",
    "apart": "Its interval lies above that of every other profile.",
    "even": "No profile is shown to be better: the default is kept, unless another is shown to be better than it.",
}


def recommend(profiles: Sequence[ProfileResult], target: float) -> ModelRecommendation:
    """Return the recommendation for one model.

    Args:
        profiles: At least one profile with its results.
        target: A fraction.
    """
    chosen, name, why = _choose_profile(profiles)
    rule = next(rule for rule in RECOMMENDATION_RULES if rule.holds(chosen, target))
    return ModelRecommendation(chosen.model, chosen, rule.verdict, rule.name, rule.describe(chosen, target), name, why)


def list_disagreements(advice: ModelRecommendation, *, recommended: str, profile: str) -> tuple[Disagreement, ...]:
    """Return where the published words (verbatim) and the recommendation differ, each with the reason."""
    found = []
    if parse_verdict(recommended) != advice.verdict:
        found.append(Disagreement("verdict", recommended, advice.verdict, f"Rule {advice.rule}: {advice.reason}"))
    if profile != advice.tried.profile:
        reason = f"Rule {advice.profile_rule}: {advice.profile_reason}"
        found.append(Disagreement("profile", profile, advice.tried.profile, reason))
    return tuple(found)


def parse_verdict(words: str) -> str:
    """Return Yes, No or Conditional if published words begin with it; the words themselves otherwise."""
    return next((verdict for verdict in (YES, NO, CONDITIONAL) if words.startswith(verdict)), words)


def has_overlap(first: ProfileResult, second: ProfileResult) -> bool:
    """Return whether two intervals share a value, so that the trials show no difference."""
    (low, high), (other_low, other_high) = first.bounds, second.bounds
    return low <= other_high and other_low <= high


def _choose_profile(profiles: Sequence[ProfileResult]) -> tuple[ProfileResult, str, str]:
    if len(profiles) == 1:
        return profiles[0], "only", PROFILE_RULES["only"]
    best = max(profiles, key=lambda profile: (profile.bounds[0], profile.profile == DEFAULT_PROFILE))
    rest = [profile for profile in profiles if profile is not best]
    against = ", ".join(f"{profile.profile} {profile.delivered_text}" for profile in rest)
    if not any(has_overlap(best, profile) for profile in rest):
        return best, "apart", f"{best.delivered_text} % lies above {against}."
    kept = next((profile for profile in _list_unbeaten(profiles) if profile.profile == DEFAULT_PROFILE), best)
    rejected = ", ".join(f"{profile.profile} {profile.delivered_text}" for profile in profiles if profile is not kept)
    return kept, "even", f"{kept.delivered_text} % overlaps {rejected}: no profile is shown to be better."


def _list_unbeaten(profiles: Iterable[ProfileResult]) -> list[ProfileResult]:
    listed = list(profiles)
    return [profile for profile in listed if not any(other.bounds[0] > profile.bounds[1] for other in listed)]
