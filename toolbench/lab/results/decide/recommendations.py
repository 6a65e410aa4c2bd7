"""Recommendations of the page /recommendations/: published ones, computed ones, and their differences."""

from collections import defaultdict
from dataclasses import dataclass

from toolbench.evals.decisions.assessments import RELIABLE, DecisionRule, MeasuredConfig
from toolbench.evals.decisions.recommendations import (
    RECOMMENDATION_RULES,
    Disagreement,
    ModelRecommendation,
    ProfileResult,
    RecommendationRule,
    has_overlap,
    list_disagreements,
    recommend,
)
from toolbench.evals.decisions.requirements import assess_config
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import PublishedRecommendation
from toolbench.lab.results.decide.page import DecideRow, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.published import PublishedMatrix, PublishedRow, get_published_matrix

PUBLISHED_SCOPE = "published"
COMPARED_RATE = 0.9  # the page compares the best published row with the first one that has exactly this success


@dataclass(frozen=True, slots=True)
class RecommendationRow:
    """Computed and published recommendation for one model.

    Attributes:
        provider: name of the provider; "" for published results.
        rate: success of the recommended profile in tool scenarios; for measured trials, it is end-to-end success with
            equally weighted scenarios. None if its tools were off.
        published_rate: success of that profile with the published interval; None for measured trials.
        published: the published recommendation; None if there is none for the model.
        p95: the p95 of the recommended profile as published, such as "3.2 s"; for measured trials, its upper bound,
            such as "at most 3.2 s", or "unknown".
    """

    recommendation: ModelRecommendation
    provider: str
    rate: Rate | None
    published_rate: Rate | None
    published: PublishedRecommendation | None
    disagreements: tuple[Disagreement, ...]
    p95: str
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Recommendations:
    """Recommendations of a scope.

    Attributes:
        published_matrix: the published matrix from which the recommendations are computed; None for measured trials,
            and if no matrix is loaded.
        overlap: (best, other), where `best` is the published rate with the highest lower bound and `other` the first
            one of exactly 90 %. None if their intervals do not overlap, if either does not exist, and for measured
            trials.
    """

    query: DecideQuery
    rows: tuple[RecommendationRow, ...] = ()
    published_matrix: PublishedMatrix | None = None
    overlap: tuple[Rate, Rate] | None = None
    rules: tuple[RecommendationRule, ...] = RECOMMENDATION_RULES

    @property
    def target_percent(self) -> float:
        """Return the success that the rule requires, in percent."""
        return self.query.rule.success

    @property
    def disagreement_count(self) -> int:
        """Return the number of models whose computed recommendation differs from the published one."""
        return sum(bool(row.disagreements) for row in self.rows)


def recommend_from_published(query: DecideQuery) -> Recommendations:
    """Return recommendations from the published matrix; they have no rows if no matrix is loaded."""
    matrix = get_published_matrix()
    if matrix is None:
        return Recommendations(query)
    rule = DecisionRule(RELIABLE, query.rule.success, None)
    return Recommendations(query, _build_published_rows(matrix, rule), matrix, _find_overlap(matrix, rule))


def recommend_from_trials(query: DecideQuery) -> Recommendations:
    """Return recommendations from the trials that the query selects."""
    return Recommendations(query, _build_measured_rows(query))


def _build_published_rows(matrix: PublishedMatrix, rule: DecisionRule) -> tuple[RecommendationRow, ...]:
    by_model: dict[str, list[PublishedRow]] = defaultdict(list)
    for row in matrix.rows:
        by_model[row.model].append(row)
    recommendations = {recommendation.model: recommendation for recommendation in matrix.recommendations}
    return tuple(_build_published_row(rows, recommendations.get(model), rule) for model, rows in by_model.items())


def _build_published_row(
    rows: list[PublishedRow], published: PublishedRecommendation | None, rule: DecisionRule
) -> RecommendationRow:
    recommendation = recommend([_build_published_result(row, rule) for row in rows], rule.target)
    recommended_row = next(row for row in rows if row.profile == recommendation.result.profile)
    return RecommendationRow(
        recommendation=recommendation,
        provider="",
        rate=None if recommended_row.not_applicable else build_rate(recommended_row.tool.k, recommended_row.tool.n),
        published_rate=recommended_row.tool,
        published=published,
        disagreements=_list_disagreements(recommendation, published),
        p95=f"{recommended_row.p95_ms / 1000:.1f} s",
    )


def _build_published_result(row: PublishedRow, rule: DecisionRule) -> ProfileResult:
    """Return the result of a published row. A published timeout counts as a trial without an answer."""
    measured = MeasuredConfig(row.model, row.profile, row.tool.k, row.tool.n, row.answered.n)
    return ProfileResult(row.model, row.profile, assess_config(measured, rule), is_tools_off=row.not_applicable)


def _find_overlap(matrix: PublishedMatrix, rule: DecisionRule) -> tuple[Rate, Rate] | None:
    applicable_rows = [row for row in matrix.rows if not row.not_applicable]
    best = max(applicable_rows, key=lambda row: row.tool.low, default=None)
    other = next((row for row in applicable_rows if row.tool.k == COMPARED_RATE * row.tool.n), None)
    if best is None or other is None:
        return None
    results = (_build_published_result(row, rule) for row in (best, other))
    return (best.tool, other.tool) if has_overlap(*results) else None


def _build_measured_rows(query: DecideQuery) -> tuple[RecommendationRow, ...]:
    published_by_model = {row.model: row for row in PublishedRecommendation.objects.all()}
    by_model: dict[tuple[str, str], list[DecideRow]] = defaultdict(list)
    for row in get_decide_page(query).rows:
        by_model[row.candidate.provider, row.candidate.model].append(row)
    return tuple(
        _build_measured_row(rows, published_by_model.get(model), query.rule.target)
        for (_, model), rows in sorted(by_model.items())
    )


def _build_measured_result(row: DecideRow) -> ProfileResult:
    candidate = row.candidate
    return ProfileResult(
        candidate.model,
        _shorten_name(candidate.name.removeprefix(f"{candidate.provider} · {candidate.model} · ")),
        row.assessment,
        is_tools_off=bool(candidate.tally.not_applicable) and not candidate.measured.tried,
    )


def _shorten_name(name: str) -> str:
    """Return the name without the default strategy and method, because names of published profiles lack them."""
    return name.removesuffix(" · production · native")


def _build_measured_row(
    rows: list[DecideRow], published: PublishedRecommendation | None, target: float
) -> RecommendationRow:
    recommendation = recommend([_build_measured_result(row) for row in rows], target)
    recommended_row = next(row for row in rows if row.assessment is recommendation.result.assessment)
    p95 = recommended_row.assessment.p95
    return RecommendationRow(
        recommendation=recommendation,
        provider=recommended_row.candidate.provider,
        rate=None if recommendation.result.is_tools_off else recommended_row.end_to_end,
        published_rate=None,
        published=published,
        disagreements=_list_disagreements(recommendation, published),
        p95="unknown" if p95 is None or p95.high is None else f"at most {p95.high / 1000:.1f} s",
        simulated=recommended_row.candidate.simulated,
    )


def _list_disagreements(
    recommendation: ModelRecommendation, published: PublishedRecommendation | None
) -> tuple[Disagreement, ...]:
    """Return the differences from the published recommendation; () without such a recommendation."""
    if published is None:
        return ()
    return list_disagreements(
        recommendation, published_verdict=published.recommended, published_profile=published.profile
    )
