"""The seven columns of the case study's matrix, computed by its rules."""

from collections import Counter
from dataclasses import dataclass, field

from toolbench.evals.statistics.rounding import format_rounded, round_half_up
from toolbench.lab.metrics.export_table import Value

CASE_STUDY_COLUMNS = (
    "model",
    "sampling_profile",
    "tool_ok",
    "tool_ok_rate",
    "control_ok (chat_only)",
    "p95_ms",
    "top tool failures",
)


@dataclass(frozen=True, slots=True)
class CaseStudyFigures:
    """Figures of one row of the case study's matrix.

    Attributes:
        ok: number of passed trials of tool scenarios.
        tried: number of trials of tool scenarios; those with infrastructure errors count as failures.
        control_ok: number of passed trials of the control.
        controls: number of trials of the control.
        p95_ms: nearest-rank p95 of the times of all trials, controls included; None without times.
        failed_scenarios: number of trials of tool scenarios that failed or had an infrastructure error, by scenario.
        failure_categories: number of the same trials by the case study's category.
    """

    ok: int
    tried: int
    control_ok: int
    controls: int
    p95_ms: float | None
    failed_scenarios: Counter[str] = field(default_factory=Counter)
    failure_categories: Counter[str] = field(default_factory=Counter)

    def list_values(self) -> tuple[Value, ...]:
        """Return the values of the columns after model and profile; None for a rate, a control or a p95 without trials.

        The last value names the two scenarios and the category with the most failures; it is "-" without failures.
        """
        failures = (*_sort_by_count(self.failed_scenarios)[:2], *_sort_by_count(self.failure_categories)[:1])
        return (
            f"{self.ok}/{self.tried}",
            f"{format_rounded(100 * self.ok / self.tried, 1)}%" if self.tried else None,
            f"{self.control_ok}/{self.controls}" if self.controls else None,
            None if self.p95_ms is None else int(round_half_up(self.p95_ms)),
            "; ".join(f"{name} x{count}" for name, count in failures) or "-",
        )


def _sort_by_count(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the pairs (name, count), the largest count first, equal counts in the order of their names."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
