"""Page that asks before a run is repeated: its trials, an estimate, and paid requests to confirm."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.forecast import Estimate
from toolbench.lab.planning.forecast_page import estimate_repeat
from toolbench.lab.planning.request_bounds import FrozenCell, load_frozen_cells
from toolbench.lab.runs.action_checks import (
    RunActionError,
    check_loaded_repeat,
    check_local,
    check_noise_source,
    count_repeated_trials,
)
from toolbench.lab.runs.repeat import find_noise_source


@dataclass(frozen=True, slots=True)
class RepeatPage:
    """Page of a repeat that was not started yet.

    Attributes:
        run: the run that the user opened.
        source: the run that is repeated: `run`, or the run that `run` repeats if `run` and the new repeat are A/A
            repeats.
        for_noise: whether the new repeat is an A/A repeat, with new sampling seeds.
        has_stopping_rule: whether `source` used sequential stopping.
        trial_count: number of trials of the new repeat.
        cell_count: number of cells of the new repeat.
        estimate: estimate of the repeat; None without one.
        obstacle: sentence that says why the run cannot be repeated; "" if it can.
        unconfirmed: the paid requests that the user has to confirm; None if there are none.
    """

    run: Run
    source: Run
    for_noise: bool
    has_stopping_rule: bool
    trial_count: int
    cell_count: int
    estimate: Estimate | None
    obstacle: str
    unconfirmed: PaidRequestsUnconfirmedError | None


def get_repeat_page(run_id: int, *, for_noise: bool) -> RepeatPage:
    """Return the page of a repeat of a run.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    run = Run.objects.get(pk=run_id, deleted_at=None)
    source = find_noise_source(run) if for_noise else run
    counts_by_cell = count_repeated_trials(source)
    cells = load_frozen_cells(counts_by_cell)
    obstacle, unconfirmed = _check_repeat(source, cells, counts_by_cell, for_noise=for_noise)
    return RepeatPage(
        run=run,
        source=source,
        for_noise=for_noise,
        has_stopping_rule=bool(source.until),
        trial_count=sum(counts_by_cell.values()),
        cell_count=len(counts_by_cell),
        estimate=estimate_repeat(source, cells, counts_by_cell),
        obstacle=obstacle,
        unconfirmed=unconfirmed,
    )


def _check_repeat(
    source: Run, cells: Mapping[int, FrozenCell], counts_by_cell: Mapping[int, int], *, for_noise: bool
) -> tuple[str, PaidRequestsUnconfirmedError | None]:
    """Return the obstacle and the unconfirmed paid requests, as `RepeatPage` has them."""
    if not counts_by_cell:
        return "The run has no trials to repeat: all were added manually or are not applicable.", None
    try:
        check_local(source)
        if for_noise:
            check_noise_source(source)
        check_loaded_repeat(source, cells, counts_by_cell, 0)
    except RunActionError as error:
        return str(error), None
    except PaidRequestsUnconfirmedError as error:
        return "", error
    return "", None
