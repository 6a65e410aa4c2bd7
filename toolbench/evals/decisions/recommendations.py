"""Recommendation of a profile and a verdict for each model.

The first rule of RECOMMENDATION_RULES that holds for the profile gives the verdict.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolbench.evals.decisions.assessments import Assessment
from toolbench.evals.decisions.requirements import P95_UNDECIDED, P95_UNKNOWN, UNDECIDED
from toolbench.evals.statistics.rounding import format_rounded

YES, NO, CONDITIONAL, NOT_APPLICABLE = "Yes", "No", "Conditional", "Not applicable"
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """The result of one profile of a model.

    Attributes:
        assessment: The assessment of the profile by the decision rule.
        is_tools_off: Whether tools were off.
    """

    model: str
    profile: str
    assessment: Assessment
    is_tools_off: bool = False

    @property
    def end_to_end_interval(self) -> tuple[float, float]:
        """Return the ends of the interval of end-to-end success, as fractions; (0, 1) if answers were repeated."""
        is_withheld = self.assessment.measured.has_repeated_answers
        return (0.0, 1.0) if is_withheld else (self.assessment.low, self.assessment.high)

    @property
    def end_to_end_text(self) -> str:
        """Return end-to-end success as text: successes/trials and the interval in percent, if it has one."""
        measured, (low, high) = self.assessment.measured, self.end_to_end_interval
        counts = f"{measured.end_to_end_successes}/{measured.tried}"
        if measured.has_repeated_answers:
            return f"{counts} without an interval"
        return f"{counts} [{format_rounded(100 * low)}–{format_rounded(100 * high)}] %"

    def join_reasons(self, names: Sequence[str]) -> str:
        """Return the sentences of the reasons with these names; "" if the assessment has none of them."""
        return " ".join(reason.sentence for reason in self.assessment.reasons if reason.name in names)


@dataclass(frozen=True, slots=True)
class RecommendationRule:
    """A rule that gives the verdict on a profile.

    Attributes:
        verdict: The verdict if the rule holds: one of YES, NO, CONDITIONAL and NOT_APPLICABLE.
        meaning: The rule in words.
        holds: Takes the result of a profile and the target as a fraction; returns whether the rule holds.
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
        result: The result of the recommended profile.
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
        published: The published verdict or profile.
        recommended: The verdict or profile that Toolbench recommends.
        reason: The rule behind the recommendation, in words.
    """

    about: str
    published: str
    recommended: str
    reason: str


def _build_reason_rule(name: str, meaning: str, *reasons: str) -> RecommendationRule:
    """Return a rule with the verdict CONDITIONAL that holds if the assessment has one of the named reasons."""
    return RecommendationRule(
        name,
        CONDITIONAL,
        meaning,
        lambda result, target: bool(result.join_reasons(reasons)),
        lambda result, target: result.join_reasons(reasons),
    )


# Every requirement of a decision has a rule, except the cost: it is needed to compare configurations, not to use one.
RECOMMENDATION_RULES: tuple[RecommendationRule, ...] = (
    RecommendationRule(
        "tools-off",
        NOT_APPLICABLE,
        "Tools were off: tool scenarios say nothing about the model.",
        lambda result, target: result.is_tools_off,
        lambda result, target: (
            f"Its tools were off, so {result.assessment.measured.passed}/{result.assessment.measured.tried} passes say "
            "nothing about the model."
        ),
    ),
    RecommendationRule(
        "no-trials",
        NOT_APPLICABLE,
        "There are no trials.",
        lambda result, target: not result.assessment.measured.tried,
        lambda result, target: "It has no trials.",
    ),
    _build_reason_rule(
        "repeats", "Repeats gave the same answers, so success has no interval: vary the instances.", "repeats"
    ),
    RecommendationRule(
        "below",
        NO,
        "The whole interval of end-to-end success lies below the target.",
        lambda result, target: result.end_to_end_interval[1] < target,
        lambda result, target: (
            f"End-to-end success is {result.end_to_end_text}, and the whole interval is below "
            f"{format_rounded(100 * target)} %."
        ),
    ),
    _build_reason_rule(
        "infrastructure",
        "The lower bound of answered success reaches the target, but that of end-to-end success does not: too many "
        "trials had no answer, or passed only after a manual retry.",
        "delivery",
    ),
    _build_reason_rule("slow", "The lower bound of p95 lies above the limit.", "p95"),
    _build_reason_rule("local", "The model shares this machine, so its p95 is not compared with the limit.", "local"),
    _build_reason_rule("scenarios", "Other configurations were tried on more scenarios.", "scenarios"),
    _build_reason_rule(
        "undecided",
        "The target or the limit lies inside an interval, or a bound of p95 is open: more trials are needed.",
        UNDECIDED,
        P95_UNKNOWN,
        P95_UNDECIDED,
    ),
    _build_reason_rule(
        "to-confirm",
        "Trials were added manually, or cells used sequential stopping: confirm the result on new trials.",
        "by-hand",
        "stopped",
    ),
    RecommendationRule(
        "reaches-target",
        YES,
        "The lower bound of end-to-end success reaches the target.",
        lambda result, target: True,
        lambda result, target: (
            f"End-to-end success is {result.end_to_end_text}, and its lower bound reaches "
            f"{format_rounded(100 * target)} %."
        ),
    ),
)
PROFILE_RULES = {
    "only": "There are trials of only one profile.",
    "no-interval": (
        "Every profile with an interval lies below the target. The repeats of the others gave the same answers: among "
        "these others, the default profile is recommended, or else the first one."
    ),
    "only-interval": "The repeats of every other profile gave the same answers, so their success has no interval.",
    "best-interval": "Its interval lies above that of every other profile that has one.",
    "overlapping": (
        "No interval lies above all others: the default profile is recommended. If there is none, or an interval lies "
        "above its own, the profile with the highest lower bound is recommended. Profiles without an interval are not "
        "compared."
    ),
}


def recommend(profiles: Sequence[ProfileResult], target: float) -> ModelRecommendation:
    """Return the recommendation for one model.

    Args:
        profiles: The results of the model's profiles, at least one.
        target: The end-to-end success required, as a fraction.
    """
    chosen, profile_rule, profile_reason = _choose_profile(profiles, target)
    rule = _find_rule(chosen, target)
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
    """Return the verdict with which a published text begins; the text itself if it begins with none."""
    verdicts = (YES, NO, CONDITIONAL, NOT_APPLICABLE)
    return next((verdict for verdict in verdicts if re.match(rf"{verdict}\b", text)), text)


def has_overlap(first: ProfileResult, second: ProfileResult) -> bool:
    """Return whether the intervals of end-to-end success of two profiles overlap."""
    (low, high), (other_low, other_high) = first.end_to_end_interval, second.end_to_end_interval
    return low <= other_high and other_low <= high


def _find_rule(result: ProfileResult, target: float) -> RecommendationRule:
    return next(rule for rule in RECOMMENDATION_RULES if rule.holds(result, target))


def _choose_profile(profiles: Sequence[ProfileResult], target: float) -> tuple[ProfileResult, str, str]:
    """Return the recommended profile, the key of its rule in PROFILE_RULES, and the reason in words."""
    tried = [profile for profile in profiles if profile.assessment.measured.tried] or list(profiles)
    if len(tried) == 1:
        return tried[0], "only", PROFILE_RULES["only"]
    repeating = [profile for profile in tried if profile.assessment.measured.has_repeated_answers]
    compared = [profile for profile in tried if profile not in repeating]
    if repeating and all(_find_rule(profile, target).verdict == NO for profile in compared):
        return _find_default(repeating) or repeating[0], "no-interval", PROFILE_RULES["no-interval"]
    if len(compared) == 1:
        return compared[0], "only-interval", PROFILE_RULES["only-interval"]
    best = max(compared, key=lambda profile: (profile.assessment.low, profile.profile == DEFAULT_PROFILE))
    if not any(has_overlap(best, profile) for profile in compared if profile is not best):
        return best, "best-interval", f"{best.end_to_end_text} lies above {_describe_others(compared, best)}."
    chosen = _find_default(_list_unbeaten(compared)) or best
    others = _describe_others([profile for profile in compared if has_overlap(chosen, profile)], chosen)
    return chosen, "overlapping", f"{chosen.end_to_end_text} overlaps {others}: no profile is shown to be better."


def _find_default(profiles: Sequence[ProfileResult]) -> ProfileResult | None:
    return next((profile for profile in profiles if profile.profile == DEFAULT_PROFILE), None)


def _describe_others(profiles: Sequence[ProfileResult], chosen: ProfileResult) -> str:
    return ", ".join(f"{profile.profile} {profile.end_to_end_text}" for profile in profiles if profile is not chosen)


def _list_unbeaten(profiles: Sequence[ProfileResult]) -> list[ProfileResult]:
    """Return the profiles whose interval does not lie below that of another profile."""
    highest_low = max(profile.end_to_end_interval[0] for profile in profiles)
    return [profile for profile in profiles if profile.end_to_end_interval[1] >= highest_low]
