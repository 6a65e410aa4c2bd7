"""The failures that the published snapshot lists; it does not list all of them."""

from collections import Counter
from dataclasses import dataclass

from toolbench.lab.models import Trial
from toolbench.lab.results.published import PublishedMatrix

_TIMEOUT = "TIMEOUT"  # a category


@dataclass(frozen=True, slots=True)
class PublishedCount:
    """Failures of one category with one model.

    Attributes:
        count: number of failures.
        heat: strength of the colour, from 0 to 100: 100 times the square root of the share of these failures in the
            model's trials, controls included.
    """

    count: int
    heat: float


@dataclass(frozen=True, slots=True)
class PublishedFailureRow:
    """One category of failures.

    Attributes:
        name: name of the category in the publication.
        count: number of failures over all models.
        outcome: `infra` for timeouts, else `fail`.
        cells: one cell for each model, in the order of the columns; None if the publication does not list the category
            for it.
    """

    name: str
    count: int
    outcome: str
    cells: tuple[PublishedCount | None, ...]


@dataclass(frozen=True, slots=True)
class PublishedFailures:
    """Failures by category and model; empty if no snapshot is loaded.

    Attributes:
        columns: names of the models with listed failures, most failures first.
        rows: categories, most failures first.
        month: month of the publication, such as `February 2026`.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[PublishedFailureRow, ...] = ()
    month: str = ""
    source: str = ""


def build_published_failures(published: PublishedMatrix | None) -> PublishedFailures:
    """Return the listed failures by category and model, over all profiles of each model."""
    if published is None:
        return PublishedFailures()
    counts: dict[tuple[str, str], int] = Counter()
    tried, by_model, by_category = Counter[str](), Counter[str](), Counter[str]()
    for row in published.rows:
        tried[row.name] += row.tool.n + row.control.n
        for category, count in row.categories:
            counts[category, row.name] += count
            by_model[row.name] += count
            by_category[category] += count
    models = [model for model, _ in sorted(by_model.items(), key=lambda item: (-item[1], item[0]))]
    rows = tuple(
        PublishedFailureRow(
            category,
            total,
            Trial.Outcome.INFRA if category == _TIMEOUT else Trial.Outcome.FAIL,
            tuple(_build_count(counts.get((category, model), 0), tried[model]) for model in models),
        )
        for category, total in sorted(by_category.items(), key=lambda item: (-item[1], item[0]))
    )
    return PublishedFailures(tuple(models), rows, published.month, published.source)


def _build_count(count: int, tried: int) -> PublishedCount | None:
    return PublishedCount(count, round(100 * (count / tried) ** 0.5, 1)) if count else None
