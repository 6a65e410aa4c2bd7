"""Results of the cells of a run, for the gates and the files for CI."""

from dataclasses import dataclass

from toolbench.lab.management.eval.output import build_cell_name
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Run


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of a cell.

    Attributes:
        name: model, settings and scenario.
        passed: number of trials that passed.
        answered: number of trials with an answer.
        text: the answered success with its interval; "no answer" if no trial has one.
        is_applicable: whether any trial of the cell is applicable.
    """

    name: str
    passed: int
    answered: int
    text: str
    is_applicable: bool


def list_cell_results(run: Run) -> tuple[CellResult, ...]:
    """Return the results of all cells of a run, in the order of the cells."""
    results = []
    for cell in run.cells.select_related("config"):
        tally = tally_cells([cell])
        rate = tally.compute_answered_success()
        text = rate.text if rate.n else "no answer"
        results.append(
            CellResult(
                build_cell_name(cell), rate.k, rate.n, text, is_applicable=tally.not_applicable != tally.trial_count
            )
        )
    return tuple(results)
