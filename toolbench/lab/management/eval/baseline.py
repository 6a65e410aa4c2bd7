"""Comparison of a run with a baseline, cell by cell, with the statistics of the page Compare."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.models import Run
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.query import CompareQuery

_CELL_ROWS = "by scenario"  # value of the column `what`


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """Row of a comparison: a scenario with the settings of both sides, all scenarios together, or a metric of calls.

    Attributes:
        name: the scenario, with the settings that distinguish this row from its others; the kind of row if there is no
            scenario.
        before: numerator and denominator of the rate of the baseline.
        after: numerator and denominator of the rate of the second side.
        difference: rate of the second side minus that of the baseline, from -1 to 1; None if it cannot be tested.
        low: lower end of the interval of the difference; None if the difference cannot be tested. The interval and `p`
            are corrected for the number of comparisons that are made together, such as all rows by scenario.
        high: upper end of the interval; None if the difference cannot be tested.
        p: p-value; None if the difference cannot be tested.
        differs: whether the interval excludes 0.
        result: sentence of the page Compare about the difference.
    """

    name: str
    before: tuple[int, int]
    after: tuple[int, int]
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    differs: bool
    result: str = ""

    @property
    def is_worse(self) -> bool:
        """Whether the second side has a lower rate than the baseline, beyond chance."""
        return self.differs and self.difference is not None and self.difference < 0

    @property
    def text(self) -> str:
        """Both rates, the difference with its interval in percentage points, and the p-value."""
        rates = f"{_describe_rate(self.before)} → {_describe_rate(self.after)}"
        if self.difference is None or self.low is None or self.high is None or self.p is None:
            return f"{rates}, not tested"
        points = f"{100 * self.difference:+.0f} points ({100 * self.low:+.0f} to {100 * self.high:+.0f})"
        return f"{rates}, {points}, p = {self.p:.3g}"


@dataclass(frozen=True, slots=True)
class BaselineGate:
    """Comparison of all cells that a run shares with its baseline.

    Attributes:
        baseline_id: the run that is the baseline.
        cells: the shared cells; empty if nothing can be compared.
        notes: sentences about the method and its limits.
        problem: sentences that say why the comparison failed; "" if it did not.
    """

    baseline_id: int
    cells: tuple[ComparedCell, ...]
    notes: tuple[str, ...]
    problem: str = ""

    @property
    def worse_cells(self) -> tuple[ComparedCell, ...]:
        """The cells that are worse beyond chance."""
        return tuple(cell for cell in self.cells if cell.is_worse)

    @property
    def failure(self) -> str:
        """Reason why the gate fails, with a line for each worse cell; "" if it passes."""
        if self.problem:
            return self.problem
        if not self.cells:
            return f"Nothing can be compared with run {self.baseline_id}: the runs share no scenario and settings."
        lines = [f"{cell.name}: {cell.text}" for cell in self.worse_cells]
        return "\n  ".join([f"Worse than run {self.baseline_id} beyond chance:", *lines]) if lines else ""


def compare_with_baseline_run(run: Run, baseline_id: int) -> BaselineGate:
    """Compare a run with a baseline, separately for each group of scenarios."""
    groups = sorted(set(run.cells.filter(control=False).values_list("scenario_group", flat=True)))
    queries = [
        CompareQuery(a={"run": str(baseline_id)}, b={"run": str(run.pk)}, group=group) for group in groups or [""]
    ]
    return build_gate(baseline_id, [export_comparison(query) for query in queries])


def build_gate(baseline_id: int, tables: Sequence[ExportTable]) -> BaselineGate:
    """Build the gate from the tables that Compare exports, one for each group of scenarios.

    If only one of the runs has a group, Compare exports the table of another group instead, so a row may be in several
    tables; of rows with the same name, one is used.
    """
    cells = {cell.name: cell for table in tables for cell in read_compared_rows(table, only=_CELL_ROWS)}
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return BaselineGate(baseline_id, tuple(cells.values()), tuple(notes))


def read_compared_rows(table: ExportTable, *, only: str = "") -> Iterator[ComparedCell]:
    """Yield the rows of an exported comparison as ComparedCell.

    Args:
        table: the table.
        only: kind of the rows to yield, as in the column `what`; "" for all rows.
    """
    for values in table.rows:
        row: Mapping[str, Any] = dict(zip(table.columns, values, strict=True))
        if only in ("", row["what"]):
            yield ComparedCell(
                name=" · ".join(part for part in (row["scenario"] or row["what"], row["stratum"]) if part),
                before=(row["first_k"], row["first_n"]),
                after=(row["second_k"], row["second_n"]),
                difference=row["difference"],
                low=row["low_simultaneous"],
                high=row["high_simultaneous"],
                p=row["p_corrected"],
                differs=bool(row["difference_shown"]),
                result=row["says"] or "",
            )


def _describe_rate(counts: tuple[int, int]) -> str:
    passed, answered = counts
    return f"{passed}/{answered}"
