"""Cells of a run that have fewer trials than a target, what is missing, and what that is likely to take."""

from collections.abc import Collection
from dataclasses import dataclass

from toolbench.lab.models import Cell, Run
from toolbench.lab.planning.forecast import Estimate
from toolbench.lab.planning.forecast_page import estimate_added
from toolbench.lab.runs.control import MAX_MISSING_TRIALS, MAX_TARGET_TRIALS, count_trials_by_cell


@dataclass(frozen=True, slots=True)
class MissingCell:
    """A cell that lacks trials.

    Attributes:
        trials: its trials, queued ones too and cancelled ones left out.
        missing: the trials that it lacks to the target.
        chosen: whether they are to be added.
    """

    cell: Cell
    trials: int
    missing: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class MissingTrialsPage:
    """The cells of a run that can get more trials.

    Attributes:
        target: trials that each cell should have.
        rows: the cells with fewer trials than that.
        obstacle: why nothing can be added; "" if something can.
        estimate: of the chosen cells; None where nothing is chosen or known.
    """

    run: Run
    target: int
    rows: tuple[MissingCell, ...]
    obstacle: str
    estimate: Estimate | None

    @property
    def total(self) -> int:
        """The trials that are missing in the chosen cells."""
        return sum(row.missing for row in self.rows if row.chosen)

    @property
    def chosen_cells(self) -> int:
        """The number of chosen cells."""
        return sum(row.chosen for row in self.rows)

    @property
    def max_target(self) -> int:
        """The highest target."""
        return MAX_TARGET_TRIALS


def get_missing_trials_page(
    run_id: int, *, target: int | None = None, chosen: Collection[int] | None = None
) -> MissingTrialsPage:
    """Return the page of a run; cells of deleted providers and those where no tool can be tried are left out.

    Args:
        run_id: the run.
        target: trials of each cell; None for the most that a cell of the run has.
        chosen: ids of the chosen cells; None for all cells that lack trials.

    Raises:
        Run.DoesNotExist: there is no such run.
    """
    run = Run.objects.get(pk=run_id, deleted_at=None)
    counts = count_trials_by_cell(run_id)
    target_trials = target or min(MAX_TARGET_TRIALS, max([run.trials_per_cell, *counts.values()]))
    cells = run.cells.select_related("config").filter(not_applicable=0, config__provider__isnull=False)
    rows = tuple(
        MissingCell(cell, count, target_trials - count, chosen is None or cell.pk in chosen)
        for cell in cells.order_by("config__position", "position")
        if (count := counts.get(cell.pk, 0)) < target_trials
    )
    missing = {row.cell.pk: row.missing for row in rows if row.chosen}
    estimate = estimate_added(run, missing) if missing else None
    return MissingTrialsPage(run, target_trials, rows, _find_obstacle(run, sum(missing.values())), estimate)


def _find_obstacle(run: Run, total: int) -> str:
    if run.imported:
        return "The run was imported, so its provider is not known here. Launch a run of your own."
    if run.state == Run.State.CANCELLING:
        return "The run is being cancelled: wait until its last requests have ended."
    if total > MAX_MISSING_TRIALS:
        return f"These are {total:,} trials; at most {MAX_MISSING_TRIALS:,} are added at once. Choose fewer cells."
    return ""
