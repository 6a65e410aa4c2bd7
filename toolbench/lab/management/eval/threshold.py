"""Check of `--fail-under`: the cells whose answered success is below a percentage."""

from collections.abc import Iterable

from toolbench.lab.management.eval.results import CellResult


def list_cells_below(cells: Iterable[CellResult], percent: float) -> tuple[CellResult, ...]:
    """Return the cells whose answered success is below `percent`.

    A cell without an answer is below every percentage except 0. Cells without an applicable trial are left out.
    """
    return tuple(cell for cell in cells if cell.is_applicable and percent > 0 and _is_below(cell, percent))


def _is_below(cell: CellResult, percent: float) -> bool:
    return not cell.answered or 100 * cell.passed < percent * cell.answered
