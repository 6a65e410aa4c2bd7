"""Two rows of the published matrix against each other: totals only, since its split by scenario is not whole."""

from dataclasses import dataclass

from toolbench.evals.statistics.differences import Stratum, difference
from toolbench.lab.results.compare.comparison import Needed, needed_for
from toolbench.lab.results.compare.query import SIDES, CompareQuery
from toolbench.lab.results.compare.statistics import Compared
from toolbench.lab.results.published import Published, PublishedRow, get_published


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    published: Published
    rows: tuple[PublishedRow, PublishedRow]
    whole: Compared
    needed: Needed


def compare_published(query: CompareQuery) -> PublishedComparison | None:
    """None where a row is not published, or has its tools off: it is not applicable."""
    published = get_published()
    keys = [query.side(name)["published"].removeprefix("p") for name in SIDES]
    if published is None:
        return None
    rows = [row for key in keys for row in published.rows if str(row.position) == key and not row.not_applicable]
    if len(rows) != len(SIDES):
        return None
    first, second = rows
    found = difference([Stratum(first.tool.k, first.tool.n, second.tool.k, second.tool.n)])
    whole = Compared(first.tool, second.tool, found, withheld=False, clustered=False)
    return PublishedComparison(published, (first, second), whole, needed_for(whole, query.points))
