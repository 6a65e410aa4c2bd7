"""The case study's published matrix: figures from elsewhere, with their date, never mixed with measured ones."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from toolbench.evals.data_files import frozen_row, read_table

CONTROL = "chat_only"  # the one control scenario of the case study
Count = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FailureCount:
    """A scenario or a category, with how often it failed. What is not listed is not published."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Cell:
    """`tool` and `control` are (ok, runs). `not_applicable`: by our rules, since tools were off."""

    model: str
    profile: str
    tool: Count
    control: Count
    p95_ms: int
    failures: tuple[FailureCount, ...] = ()
    not_applicable: bool = False


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The published words, verbatim."""

    model: str
    profile: str
    parameters: str
    preset: str
    recommended: str
    notes: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`overall`, `tool`, `control` and `scenarios` are the totals as published, as (ok, runs)."""

    slug: str
    title: str
    source: str
    published: str
    trials: int
    note: str
    overall: Count
    tool: Count
    control: Count
    scenarios: dict[str, Count]
    cells: tuple[Cell, ...]
    recommendations: tuple[Recommendation, ...]


@cache
def snapshots() -> tuple[Snapshot, ...]:
    table = frozen_row(read_table("published"))
    table["scenarios"] = frozen_row(table["scenarios"])
    table["cells"] = tuple(_cell(frozen_row(row)) for row in table["cells"])
    table["recommendations"] = tuple(Recommendation(**row) for row in table["recommendations"])
    return (Snapshot(**table),)


def _cell(row: dict[str, Any]) -> Cell:
    failures = tuple(FailureCount(**one) for one in row.pop("failures", ()))
    return Cell(**row, failures=failures)
