"""Sequential stopping: an interim analysis when a round is over, and the next round for undecided cells only.

An analysis takes place only where every trial of the round has ended: in the middle of a round, counts would hold the
quick answers and not the slow ones.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from django.db import connection, transaction
from django.db.models import F, Max, Q

from toolbench.evals.statistics.stopping import ANALYSIS_STEP_TRIALS, CellCount, StoppingRule, decide_cells
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.runs.launch import build_trial, derive_seed
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.job_failures import record_failures
from toolbench.lab.worker.queue import notify_workers, queue_trials

LIMIT_REACHED, ANSWERS_REPEAT, PROVIDER_DELETED = "limit", "repeats", "gone"
DECISION_TEXTS: Mapping[str, str] = {
    "above": "decided: at or above the target",
    "below": "decided: below the target",
    "narrow": "decided: narrow enough",
    "best": "decided: the best of its scenario",
    "beaten": "decided: another one is better",
    LIMIT_REACHED: "undecided when its trials were used up",
    ANSWERS_REPEAT: "ended: its answers repeat, so more trials tell nothing",
    PROVIDER_DELETED: "ended: its provider was deleted",
}

_FINISHED_ROUNDS = load_statement("runs/finished_rounds")


def analyse_undecided_runs() -> int:
    """Decide cells whose round is over and queue the next round of the others; return the number of queued trials.

    A run that cannot be analysed is logged and counted, and does not stop the others.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FINISHED_ROUNDS)
        resting: dict[int, list[int]] = defaultdict(list)
        for run_id, cell_id in cursor.fetchall():
            resting[run_id].append(cell_id)
    queued = 0
    for run_id, cells in resting.items():
        with record_failures("continuing undecided runs"):
            queued += _analyse_run(run_id, cells)
    return queued


def _analyse_run(run_id: int, cell_ids: list[int]) -> int:
    with transaction.atomic():
        cells = _lock_cells(cell_ids)
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        if run.state != Run.State.RUNNING or not cells:
            return 0
        for cell in cells:
            cell.run = run
        decided = _decide_cells(run, cells)
        for cell_id, word in decided.items():
            Cell.objects.filter(pk=cell_id).update(decided=word)
        trials = list(_iter_round(run, [cell for cell in cells if cell.pk not in decided]))
        queue_trials(trials)
        Run.objects.filter(pk=run_id).update(trial_count=F("trial_count") + len(trials))
        recompute([cell.pk for cell in cells])
        transaction.on_commit(lambda: notify_workers(trial.provider_id for trial in trials if trial.provider_id))
    return len(trials)


def _lock_cells(cell_ids: Collection[int]) -> list[Cell]:
    """Lock the cells that no other process has decided or continued, and return them with fresh counts.

    Cells are locked before runs, as everywhere.
    """
    open_ones = Cell.objects.filter(pk__in=cell_ids, decided="").order_by("pk")
    locked = [cell.pk for cell in open_ones.select_for_update(no_key=True)]
    busy = Q(trials__state__in=[Trial.State.QUEUED, Trial.State.RUNNING])
    resting = list(Cell.objects.filter(pk__in=locked).exclude(busy).values_list("pk", flat=True))
    recompute(resting)
    return list(Cell.objects.filter(pk__in=resting).select_related("config").order_by("pk"))


def _decide_cells(run: Run, cells: Sequence[Cell]) -> dict[int, str]:
    """Return the reason of the end of each cell that has ended, by its id."""
    until = StoppingRule.read(run.until)
    found: dict[int, str] = {}
    for rivals in _group_competitors(run, cells, until):
        words = decide_cells(until, [_build_count(cell, until) for cell in rivals])
        found |= {cell.pk: word for cell, word in zip(rivals, words, strict=True) if word and not cell.decided}
    for cell, last in _get_last_indexes(cells):
        if cell.pk not in found and (word := _find_other_ending(cell, last, run.trials_per_cell)):
            found[cell.pk] = word
    return found


def _group_competitors(run: Run, cells: Sequence[Cell], until: StoppingRule) -> Iterator[list[Cell]]:
    """Yield each cell alone; where the best is looked for, yield it with all its competitors, ended ones included."""
    if until.rule != "best":
        yield from ([cell] for cell in cells)
        return
    rivals: dict[str, list[Cell]] = defaultdict(list)
    for cell in run.cells.filter(error__isnull=False, scenario__in={cell.scenario for cell in cells}).order_by("pk"):
        rivals[cell.scenario].append(cell)
    yield from rivals.values()


def _build_count(cell: Cell, until: StoppingRule) -> CellCount:
    assert cell.error is not None
    counts = tally_cells([cell])
    if until.rate == "given":
        return CellCount(counts.passed, counts.answered, cell.error)
    return CellCount(counts.passed - counts.late_passes, counts.tried, cell.error)


def _get_last_indexes(cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    of = dict(Cell.objects.filter(pk__in=[c.pk for c in cells]).values_list("pk").annotate(last=Max("trials__index")))
    return [(cell, of[cell.pk] or 0) for cell in cells]


def _find_other_ending(cell: Cell, last: int, most: int) -> str:
    if tally_cells([cell]).repeating:
        return ANSWERS_REPEAT
    if cell.config.provider_id is None:
        return PROVIDER_DELETED
    return LIMIT_REACHED if last >= most else ""


def _iter_round(run: Run, cells: Sequence[Cell]) -> Iterator[Trial]:
    """Yield trials block by block, in an order drawn from the run's order seed, at the end of the run."""
    last = {cell.pk: index for cell, index in _get_last_indexes(cells)}
    position = (run.trials.aggregate(last=Max("position"))["last"] or 0) + 1
    drawing = random.Random(derive_seed(run.order_seed, "round", position))
    for number in range(1, ANALYSIS_STEP_TRIALS + 1):
        block = [cell for cell in cells if last[cell.pk] + number <= run.trials_per_cell]
        drawing.shuffle(block)
        for cell in block:
            yield build_trial(run, cell, last[cell.pk] + number, position=position, applicable=True)
            position += 1
