"""The check of `--fail-under`: cells below a percentage."""

from toolbench.lab.management.eval.output import build_cell_name
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Run


def list_cells_below(run: Run, percent: float) -> tuple[str, ...]:
    """Return a line for every cell whose answered success is below `percent`.

    A cell without an answer is below every percentage except 0. Cells that are not applicable are left out.
    """
    below: list[str] = []
    for cell in run.cells.select_related("config"):
        sums = tally_cells([cell])
        rate = sums.answered_success()
        if sums.not_applicable == sums.total or percent <= 0:
            continue
        if not rate.n or 100 * rate.k < percent * rate.n:
            below.append(f"{build_cell_name(cell)}: {rate.text if rate.n else 'no answer at all'}")
    return tuple(below)
