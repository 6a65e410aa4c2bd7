"""Comparison of two rows of the published matrix, by totals only because its split by scenario is incomplete."""

from dataclasses import dataclass

from toolbench.evals.statistics.differences import Stratum, compute_difference
from toolbench.lab.results.compare.comparison import RequiredTrials, compute_required_trials
from toolbench.lab.results.compare.query import SIDES, CompareQuery
from toolbench.lab.results.compare.statistics import RateComparison
from toolbench.lab.results.published import PublishedMatrix, PublishedRow, get_published_matrix


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """Comparison of two rows of the published matrix."""

    published: PublishedMatrix
    rows: tuple[PublishedRow, PublishedRow]
    whole: RateComparison
    needed: RequiredTrials


def compare_published(query: CompareQuery) -> PublishedComparison | None:
    """Compare the two published rows that the query names.

    Returns:
        None where a row is not published or is not applicable because its tools are off.
    """
    published = get_published_matrix()
    keys = [query.side(name)["published"].removeprefix("p") for name in SIDES]
    if published is None:
        return None
    rows = [row for key in keys for row in published.rows if str(row.position) == key and not row.not_applicable]
    if len(rows) != len(SIDES):
        return None
    first, second = rows
    found = compute_difference([Stratum(first.tool.k, first.tool.n, second.tool.k, second.tool.n)])
    whole = RateComparison(first.tool, second.tool, found, withheld=False, clustered=False)
    return PublishedComparison(published, (first, second), whole, compute_required_trials(whole, query.points))
