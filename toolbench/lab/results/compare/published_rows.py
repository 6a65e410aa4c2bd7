"""Comparison of rows of the published matrix with a baseline.

Differences use the totals over the tool scenarios, since the published results by scenario are incomplete.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.statistics.differences import Stratum, compute_difference
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.results.compare.baseline import RESULT_MARKS, ComparedRows, compute_baseline_required_trials
from toolbench.lab.results.compare.comparison import RequiredTrials
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.scope_sides import MAX_SCOPE_SIDES, find_next_letter
from toolbench.lab.results.compare.secondary_metrics import apply_bonferroni
from toolbench.lab.results.compare.statistics import RateComparison
from toolbench.lab.results.published import PublishedMatrix, PublishedRow, get_published_matrix


@dataclass(frozen=True, slots=True)
class PublishedSide:
    """A row of the published matrix and its difference from the baseline.

    Attributes:
        number: position of the side in the query; 0 is the baseline.
        compared: comparison of the baseline with this side; None for the baseline.
    """

    number: int
    row: PublishedRow
    compared: RateComparison | None

    @property
    def name(self) -> str:
        """Return the model and the sampling profile."""
        return name_published_row(self.row)

    @property
    def rate(self) -> Rate:
        """Return the published success in tool scenarios."""
        return self.row.tool

    @property
    def is_baseline(self) -> bool:
        """Return whether this is the baseline."""
        return self.number == 0

    @property
    def result(self) -> str:
        """Return "better" or "worse" for a significant difference, else "cannot tell"; "baseline" for the baseline."""
        if self.compared is None:
            return "baseline"
        return self.compared.result_text if self.compared.differs else "cannot tell"

    @property
    def mark(self) -> str:
        """Return the trial outcome whose mark the page shows for the result, such as "pass" for "better"."""
        return RESULT_MARKS.get(self.result, "na")


@dataclass(frozen=True, slots=True)
class PublishedComparison(ComparedRows[PublishedSide]):
    """Rows of the published matrix against a baseline. There may be no row but the baseline.

    Attributes:
        query: the query with these sides.
        other_values: (key, name) of the rows that are not sides and can be added.
        next_letter: letter of the side that can be added; "" if there are MAX_SIDES sides.
        is_default: whether the sides were chosen by their success, because the URL names none.
        required_trials: the trials that each side needs to detect a difference of `query.points`.
        scenarios: (scenario, success of each side), the control last; None if a success was not published.
    """

    query: CompareQuery
    published: PublishedMatrix
    other_values: tuple[tuple[str, str], ...]
    next_letter: str
    is_default: bool
    required_trials: RequiredTrials
    scenarios: tuple[tuple[str, tuple[Rate | None, ...]], ...]

    @property
    def comparisons(self) -> int:
        """Return the number of differences that are shown together; their intervals are corrected for it."""
        return len(self.others)


def name_published_row(row: PublishedRow) -> str:
    """Return the model and the sampling profile of a row."""
    return f"{row.model} · {row.profile}"


def compare_published(query: CompareQuery) -> PublishedComparison | None:
    """Compare the published rows that the query names; if it names none, rows with the highest success.

    Returns:
        The comparison; None if no published matrix is loaded, if it has no applicable row, if a named row is unknown,
        not applicable or named twice, or if the query names a side that is not a published row.
    """
    published = get_published_matrix()
    if published is None:
        return None
    applicable = {row.key: row for row in published.rows if not row.not_applicable}
    keys = _list_keys(query) or _list_default_keys(tuple(applicable.values()))
    if not keys or len(set(keys)) < len(keys) or not applicable.keys() >= set(keys):
        return None
    rows = [applicable[key] for key in keys]
    sides = _build_sides(rows)
    published_query = query.with_sides([*({"published": key} for key in keys), *([{}] if len(keys) == 1 else [])])
    return PublishedComparison(
        query=published_query,
        published=published,
        rows=sides,
        other_values=tuple((key, name_published_row(row)) for key, row in applicable.items() if key not in keys),
        next_letter=find_next_letter(len(keys)),
        is_default=not query.has_named_sides,
        required_trials=compute_baseline_required_trials(sides, query.points),
        scenarios=_split_by_scenario(rows),
    )


def _list_keys(query: CompareQuery) -> list[str]:
    """Return the row key of each named side, such as "p3"; it is "p" for a side that is not a published row."""
    return [f"p{side.get('published', '').removeprefix('p')}" for side in query.side_values if side]


def _list_default_keys(rows: Sequence[PublishedRow]) -> list[str]:
    """Return the keys of the rows with the highest success, the highest first; at most MAX_SCOPE_SIDES.

    Of rows with the same success, rounded to 0.1 %, only the first is used: the others would show no difference.
    """
    row_by_success = {row.tool.axis: row for row in sorted(rows, key=lambda row: row.position, reverse=True)}
    return [row_by_success[success].key for success in sorted(row_by_success, reverse=True)[:MAX_SCOPE_SIDES]]


def _build_sides(rows: Sequence[PublishedRow]) -> tuple[PublishedSide, ...]:
    baseline = PublishedSide(0, rows[0], None)
    comparisons = apply_bonferroni([_compare(rows[0].tool, row.tool) for row in rows[1:]])
    numbered = enumerate(zip(rows[1:], comparisons, strict=True), start=1)
    return (baseline, *(PublishedSide(number, row, compared) for number, (row, compared) in numbered))


def _compare(first: Rate, second: Rate) -> RateComparison:
    difference = compute_difference([Stratum(first.k, first.n, second.k, second.n)])
    return RateComparison(first, second, difference, withheld=False, clustered=False)


def _split_by_scenario(rows: Sequence[PublishedRow]) -> tuple[tuple[str, tuple[Rate | None, ...]], ...]:
    splits = [{**dict(row.split), CONTROL_SCENARIO: row.control} for row in rows]
    slugs = dict.fromkeys(slug for split in splits for slug in split if slug != CONTROL_SCENARIO)
    return tuple((slug, tuple(split.get(slug) for split in splits)) for slug in (*slugs, CONTROL_SCENARIO))
