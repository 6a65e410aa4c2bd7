"""Check of `--fail-under`: the cells whose answered success is below a percentage."""

from toolbench.lab.management.eval.output import build_cell_name
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Run


def list_cells_below(run: Run, percent: float) -> tuple[str, ...]:
    """Return a line for every cell whose answered success is below `percent`.

    A cell without an answer is below every percentage except 0. Cells without an applicable trial are left out.
    """
    lines: list[str] = []
    for cell in run.cells.select_related("config"):
        tally = tally_cells([cell])
        rate = tally.compute_answered_success()
        if tally.not_applicable == tally.trial_count or percent <= 0:
            continue
        if not rate.n or 100 * rate.k < percent * rate.n:
            lines.append(f"{build_cell_name(cell)}: {rate.text if rate.n else 'no answer'}")
    return tuple(lines)
