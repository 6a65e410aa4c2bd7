"""Comparison of two rows of the published matrix.

It uses totals, since the published results by scenario are incomplete.
"""

from dataclasses import dataclass

from toolbench.evals.statistics.differences import Stratum, compute_difference
from toolbench.lab.results.compare.comparison import RequiredTrials, compute_required_trials
from toolbench.lab.results.compare.query import SIDES, CompareQuery
from toolbench.lab.results.compare.statistics import RateComparison
from toolbench.lab.results.published import PublishedMatrix, PublishedRow, get_published_matrix


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """Comparison of the totals of two rows of the published matrix.

    Attributes:
        required_trials: the trials that each side needs to detect the difference that the query names.
    """

    published: PublishedMatrix
    rows: tuple[PublishedRow, PublishedRow]
    comparison: RateComparison
    required_trials: RequiredTrials


def compare_published(query: CompareQuery) -> PublishedComparison | None:
    """Compare the two published rows that the query names.

    Returns:
        The comparison; None without a published matrix, if a row is unknown or not applicable, or if the sides are not
        two published rows.
    """
    published = get_published_matrix()
    keys = [side.get("published", "").removeprefix("p") for side in query.sides]
    if published is None or len(keys) != len(SIDES):
        return None
    rows = [row for key in keys for row in published.rows if str(row.position) == key and not row.not_applicable]
    if len(rows) != len(SIDES):
        return None
    first, second = rows
    difference = compute_difference([Stratum(first.tool.k, first.tool.n, second.tool.k, second.tool.n)])
    comparison = RateComparison(first.tool, second.tool, difference, withheld=False, clustered=False)
    required_trials = compute_required_trials(comparison, query.points)
    return PublishedComparison(published, (first, second), comparison, required_trials)
