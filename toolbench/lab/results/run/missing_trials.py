"""Page of missing trials: cells of a run with too few trials, and an estimate for the missing ones."""

from collections.abc import Collection
from dataclasses import dataclass

from toolbench.lab.models import Cell, Run
from toolbench.lab.planning.forecast import Estimate
from toolbench.lab.planning.forecast_page import estimate_added
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS
from toolbench.lab.runs.control import MAX_MISSING_TRIALS, count_trials_by_cell


@dataclass(frozen=True, slots=True)
class MissingCell:
    """Cell with fewer trials than the target.

    Attributes:
        trial_count: number of its trials, queued ones included and cancelled ones not.
        missing_count: number of trials that it lacks.
        is_chosen: whether its missing trials will be added.
    """

    cell: Cell
    trial_count: int
    missing_count: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class MissingTrialsPage:
    """Page of the missing trials of a run.

    Attributes:
        target: number of trials that each cell should have.
        rows: the cells with fewer trials than the target.
        obstacle: sentence that says why no trial can be added; "" if trials can be added.
        estimate: estimate for the chosen cells; None without chosen cells or without an estimate.
    """

    run: Run
    target: int
    rows: tuple[MissingCell, ...]
    obstacle: str
    estimate: Estimate | None

    @property
    def total(self) -> int:
        """Return the number of trials that the chosen cells lack."""
        return sum(row.missing_count for row in self.rows if row.is_chosen)

    @property
    def chosen_cell_count(self) -> int:
        """Return the number of chosen cells."""
        return sum(row.is_chosen for row in self.rows)

    @property
    def max_target(self) -> int:
        """Return the highest target that the form accepts."""
        return MAX_CELL_TRIALS


def get_missing_trials_page(
    run_id: int, *, target: int | None = None, chosen: Collection[int] | None = None
) -> MissingTrialsPage:
    """Return the page of a run. Cells of deleted providers and cells with trials that are not applicable are left out.

    Args:
        run_id: primary key of the run.
        target: number of trials that each cell should have. None or 0 stands for the run's number of trials per cell
            or, if it is larger, the largest number of trials that a cell has; at most MAX_CELL_TRIALS.
        chosen: ids of the chosen cells; None for all cells that lack trials.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    run = Run.objects.get(pk=run_id, deleted_at=None)
    counts = count_trials_by_cell(run_id)
    target_trials = target or min(MAX_CELL_TRIALS, max([run.trials_per_cell, *counts.values()]))
    cells = run.cells.select_related("config").filter(not_applicable=0, config__provider__isnull=False)
    rows = tuple(
        MissingCell(cell, count, target_trials - count, chosen is None or cell.pk in chosen)
        for cell in cells.order_by("config__position", "position")
        if (count := counts.get(cell.pk, 0)) < target_trials
    )
    missing_counts = {row.cell.pk: row.missing_count for row in rows if row.is_chosen}
    estimate = estimate_added(run, missing_counts) if missing_counts else None
    return MissingTrialsPage(run, target_trials, rows, _find_obstacle(run, sum(missing_counts.values())), estimate)


def _find_obstacle(run: Run, missing_count: int) -> str:
    if run.imported:
        return "The run was imported and has no provider here. Launch a new run instead."
    if run.state == Run.State.CANCELLING:
        return "The run is being cancelled. Wait until its last requests have ended."
    if missing_count > MAX_MISSING_TRIALS:
        return f"You can add {MAX_MISSING_TRIALS:,} trials at once; these are {missing_count:,}. Choose fewer cells."
    return ""
