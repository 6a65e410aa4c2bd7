"""Recommendations: the published ones verbatim, the computed ones beside them, and their differences."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.evals.decisions.recommendations import (
    PROFILE_RULES,
    RECOMMENDATION_RULES,
    Disagreement,
    ModelRecommendation,
    ProfileResult,
    RecommendationRule,
    list_disagreements,
    recommend,
)
from toolbench.evals.decisions.recommendations import has_overlap as overlap
from toolbench.evals.statistics.pooling import pool_samples
from toolbench.lab.metrics.rate import Rate, build_pooled_rate, build_rate
from toolbench.lab.models import PublishedRecommendation
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.published import PublishedMatrix, PublishedRow, get_published_matrix

PUBLISHED_SCOPE = "published"
OVERLAP_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class RecommendationRow:
    """Recommendation for one model.

    Attributes:
        rate: the rate under the rules of Toolbench; None where it is not applicable.
        published_rate: the rate as published; None for measured rows.
        theirs: None if nothing was published about the model.
    """

    advice: ModelRecommendation
    provider: str
    rate: Rate | None
    published_rate: Rate | None
    theirs: PublishedRecommendation | None
    differences: tuple[Disagreement, ...]
    p95: str
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Recommendations:
    """Recommendations of a scope.

    Attributes:
        published: the snapshot, if the recommendations are computed from it.
        overlap: the best count, and one at nine of ten that is not significantly different.
    """

    query: DecideQuery
    rows: tuple[RecommendationRow, ...] = ()
    published: PublishedMatrix | None = None  # the snapshot, when it is what is looked at
    overlap: tuple[Rate, Rate] | None = None  # the best count and one with nine of ten that it cannot be told from
    rules: tuple[RecommendationRule, ...] = RECOMMENDATION_RULES

    @property
    def target(self) -> float:
        """Return the required success in percent."""
        return self.query.rule.success

    @property
    def differing(self) -> int:
        """Return the number of rows that differ from the published recommendation."""
        return sum(bool(row.differences) for row in self.rows)


def recommend_from_snapshot(query: DecideQuery) -> Recommendations:
    """Return recommendations from the published snapshot; without rows if it is not loaded."""
    published = get_published_matrix()
    if published is None:
        return Recommendations(query)
    return Recommendations(
        query, _build_published_rows(published, query.rule.target), published, _find_overlap(published)
    )


def recommend_from_trials(query: DecideQuery) -> Recommendations:
    """Return recommendations from the measured trials in scope."""
    return Recommendations(query, _build_measured_rows(query))


def get_profile_rules() -> Mapping[str, str]:
    """Return how a profile is chosen, by the names of the rules."""
    return PROFILE_RULES


def _build_published_rows(published: PublishedMatrix, target: float) -> tuple[RecommendationRow, ...]:
    by_model: dict[str, list[PublishedRow]] = defaultdict(list)
    for row in published.rows:
        by_model[row.model].append(row)
    words = {recommendation.model: recommendation for recommendation in published.recommendations}
    return tuple(_build_published_row(rows, words.get(model), target) for model, rows in by_model.items())


def _build_published_row(
    rows: list[PublishedRow], published: PublishedRecommendation | None, target: float
) -> RecommendationRow:
    advice = recommend([_build_tried(row) for row in rows], target)
    chosen = next(row for row in rows if row.profile == advice.result.profile)
    parted = (
        list_disagreements(advice, recommended=published.recommended, profile=published.profile) if published else ()
    )
    return RecommendationRow(
        advice=advice,
        provider="",
        rate=None if chosen.not_applicable else build_rate(chosen.tool.k, chosen.tool.n),
        published_rate=chosen.tool,
        theirs=published,
        differences=parted,
        p95=f"{chosen.p95_ms / 1000:.1f} s by the index rule over 50 trials with controls: no number under our rules",
    )


def _build_tried(row: PublishedRow) -> ProfileResult:
    """Return the result of a published row. A published timeout is no answer but counts as tried."""
    return ProfileResult(
        row.model, row.profile, row.tool.k, row.tool.n, row.answered.n, is_tools_off=row.not_applicable
    )


def _find_overlap(published: PublishedMatrix) -> tuple[Rate, Rate] | None:
    counted = [row for row in published.rows if not row.not_applicable]
    best = max(counted, key=lambda row: row.tool.low, default=None)
    near = next((row for row in counted if row.tool.k == OVERLAP_SHARE * row.tool.n), None)
    if best is None or near is None or not overlap(_build_tried(best), _build_tried(near)):
        return None
    return best.tool, near.tool


def _build_measured_rows(query: DecideQuery) -> tuple[RecommendationRow, ...]:
    page = get_decide_page(query)
    limit = page.decision.rule.within_ms
    words = {row.model: row for row in PublishedRecommendation.objects.all()}
    by_model: dict[tuple[str, str], list[ProfileResult]] = defaultdict(list)
    simulated: dict[tuple[str, str], bool] = {}
    for row in page.rows:
        found, measured = row.candidate, row.standing.measured
        high = row.standing.p95.high if row.standing.p95 else None
        key = (found.provider, found.model)
        named = measured.label.removeprefix(f"{found.provider} · {found.model} · ")
        off = bool(found.tally.not_applicable) and not measured.tried
        tried = ProfileResult(
            found.model, _shorten_label(named), measured.passed, measured.tried, measured.answered, off, high, limit,
            late=measured.late, delivery=measured.delivery, given=measured.given, scenarios=measured.scenarios,
        )  # fmt: skip
        by_model[key].append(tried)
        simulated[key] = found.simulated
    return tuple(
        _build_measured_row(key[0], profiles, words, simulated=simulated[key], target=query.rule.target)
        for key, profiles in sorted(by_model.items())
    )


def _shorten_label(label: str) -> str:
    """Return the profile alone where the rest is the default, so that it can be compared with published profiles."""
    return label.removesuffix(" · production · native")


def _build_measured_row(
    provider: str,
    profiles: list[ProfileResult],
    words: Mapping[str, PublishedRecommendation],
    *,
    simulated: bool,
    target: float,
) -> RecommendationRow:
    advice = recommend(profiles, target)
    published = words.get(advice.model)
    parted = (
        list_disagreements(advice, recommended=published.recommended, profile=published.profile) if published else ()
    )
    tried, high = advice.result, advice.result.p95_high
    return RecommendationRow(
        advice=advice,
        provider=provider,
        rate=None if tried.is_tools_off else build_pooled_rate(tried.delivered, tried.tried, pool_samples(tried.parts)),
        published_rate=None,
        theirs=published,
        differences=parted,
        p95="unknown" if high is None else f"at most {high / 1000:.1f} s",
        simulated=simulated,
    )
