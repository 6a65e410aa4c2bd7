"""The case study's published matrix: dated figures, which are never pooled with measured ones."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from toolbench.evals.data_files import freeze_row, read_table

CONTROL_SCENARIO = "chat_only"  # the one control scenario of the case study
PassCount = tuple[int, int]  # passed, trials


@dataclass(frozen=True, slots=True)
class FailureCount:
    """The number of failures of one scenario, or of one category of failures."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class CaseStudyCell:
    """Published figures of one model with one profile.

    Attributes:
        tool: The passes in the tool scenarios.
        control: The passes in the control scenario.
        p95_ms: The 95th percentile of latency, in milliseconds.
        failures: The published counts of failures; those of other scenarios and categories are not known.
        not_applicable: Whether the trials are not applicable by Toolbench's rules, because tools were off.
    """

    model: str
    profile: str
    tool: PassCount
    control: PassCount
    p95_ms: int
    failures: tuple[FailureCount, ...] = ()
    not_applicable: bool = False


@dataclass(frozen=True, slots=True)
class CaseStudyRecommendation:
    """A published recommendation, verbatim."""

    model: str
    profile: str
    parameters: str
    preset: str
    recommended: str
    notes: str


@dataclass(frozen=True, slots=True)
class CaseStudySnapshot:
    """One published matrix.

    Attributes:
        source: The origin of the figures, in words.
        published: The date of publication, as text.
        trials: The number of trials of one model with one profile in one scenario.
        overall: The passes in all scenarios.
        tool: The passes in the tool scenarios.
        control: The passes in the control scenario.
        scenarios: The passes by scenario.
    """

    slug: str
    title: str
    source: str
    published: str
    trials: int
    note: str
    overall: PassCount
    tool: PassCount
    control: PassCount
    scenarios: dict[str, PassCount]
    cells: tuple[CaseStudyCell, ...]
    recommendations: tuple[CaseStudyRecommendation, ...]


@cache
def load_snapshots() -> tuple[CaseStudySnapshot, ...]:
    """Return every published matrix."""
    table = freeze_row(read_table("published"))
    table["scenarios"] = freeze_row(table["scenarios"])
    table["cells"] = tuple(_parse_cell(freeze_row(row)) for row in table["cells"])
    table["recommendations"] = tuple(CaseStudyRecommendation(**row) for row in table["recommendations"])
    return (CaseStudySnapshot(**table),)


def _parse_cell(row: dict[str, Any]) -> CaseStudyCell:
    failures = tuple(FailureCount(**failure) for failure in row.pop("failures", ()))
    return CaseStudyCell(**row, failures=failures)
