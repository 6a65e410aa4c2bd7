"""Sequential stopping: interim analyses, and the next round of trials for undecided cells.

An analysis waits until all trials of a round have ended. Earlier counts would be biased, since they would lack the slow
answers.
"""

import random
from collections import Counter, defaultdict
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

LIMIT_REACHED, ANSWERS_REPEAT, PROVIDER_DELETED, RUN_CANCELLED = "limit", "repeats", "gone", "cancelled"
# Why a cell gets no more trials, by Cell.decided.
DECISION_TEXTS: Mapping[str, str] = {
    "above": "decided: at or above the target",
    "below": "decided: below the target",
    "narrow": "decided: narrow enough",
    "best": "decided: the best of its scenario",
    "beaten": "decided: another configuration is better",
    LIMIT_REACHED: "undecided after the maximum number of trials",
    ANSWERS_REPEAT: "ended: its answers repeat, so more trials add no information",
    PROVIDER_DELETED: "ended: its provider was deleted",
    RUN_CANCELLED: "undecided: the run was cancelled",
}

_FINISHED_ROUNDS = load_statement("runs/finished_rounds")


def analyse_undecided_runs() -> int:
    """Analyse the cells whose round is over, and queue the next round of those that stay undecided.

    If a run cannot be analysed, the failure is logged and counted, and the other runs are still analysed.

    Returns:
        The number of queued trials.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FINISHED_ROUNDS)
        cell_ids_by_run: dict[int, list[int]] = defaultdict(list)
        for run_id, cell_id in cursor.fetchall():
            cell_ids_by_run[run_id].append(cell_id)
    queued = 0
    for run_id, cell_ids in cell_ids_by_run.items():
        with record_failures("continuing undecided runs"):
            queued += _analyse_run(run_id, cell_ids)
    return queued


def end_rounds(run_id: int) -> None:
    """End the rounds of all undecided cells of a run that is being cancelled.

    Call it in a transaction, before the run is locked: cells are always locked before runs.
    """
    _replace_decision(run_id, "", RUN_CANCELLED)


def reopen_rounds(run_id: int) -> None:
    """Undo `end_rounds`: make the cells undecided again. Call it as `end_rounds`."""
    _replace_decision(run_id, RUN_CANCELLED, "")


def _replace_decision(run_id: int, old: str, new: str) -> None:
    """Lock those cells with sequential stopping that have the decision `old`, and give them the decision `new`."""
    cells = Cell.objects.filter(run_id=run_id, error__isnull=False, decided=old).order_by("pk")
    locked_ids = [cell.pk for cell in cells.select_for_update(no_key=True)]
    Cell.objects.filter(pk__in=locked_ids).update(decided=new)


def count_further_trials(run: Run) -> Counter[int]:
    """Return how many trials later rounds may add at most, by cell id; cells that get none have no entry."""
    undecided = run.cells.filter(error__isnull=False, decided="", config__provider__isnull=False)
    last_indexes = _get_last_indexes(list(undecided))
    return Counter({cell.pk: run.trials_per_cell - last for cell, last in last_indexes if last < run.trials_per_cell})


def _analyse_run(run_id: int, cell_ids: list[int]) -> int:
    """Decide cells of one run, queue the next round of the undecided ones, and return the number of queued trials."""
    with transaction.atomic():
        cells = _lock_cells(cell_ids)
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        if run.state != Run.State.RUNNING or not cells:
            return 0
        for cell in cells:
            cell.run = run
        decided = _decide_cells(run, cells)
        for cell_id, decision in decided.items():
            Cell.objects.filter(pk=cell_id).update(decided=decision)
        trials = list(_iter_round(run, [cell for cell in cells if cell.pk not in decided]))
        queue_trials(trials)
        Run.objects.filter(pk=run_id).update(trial_count=F("trial_count") + len(trials))
        recompute([cell.pk for cell in cells])
        transaction.on_commit(lambda: notify_workers(trial.provider_id for trial in trials if trial.provider_id))
    return len(trials)


def _lock_cells(cell_ids: Collection[int]) -> list[Cell]:
    """Lock those of the cells that are undecided, and return those without an open trial, recomputed.

    Another process may have decided a cell or queued its next round. Cells are always locked before runs.
    """
    undecided = Cell.objects.filter(pk__in=cell_ids, decided="").order_by("pk")
    locked_ids = [cell.pk for cell in undecided.select_for_update(no_key=True)]
    has_open_trials = Q(trials__state__in=[Trial.State.QUEUED, Trial.State.RUNNING])
    idle_ids = list(Cell.objects.filter(pk__in=locked_ids).exclude(has_open_trials).values_list("pk", flat=True))
    recompute(idle_ids)
    return list(Cell.objects.filter(pk__in=idle_ids).select_related("config").order_by("pk"))


def _decide_cells(run: Run, cells: Sequence[Cell]) -> dict[int, str]:
    """Return the decision (a key of DECISION_TEXTS) of each cell that gets no more trials, by its id."""
    rule = StoppingRule.from_json(run.until)
    decided: dict[int, str] = {}
    for competitors in _group_competitors(run, cells, rule):
        decisions = decide_cells(rule, [_build_count(cell, rule) for cell in competitors])
        decided |= {
            cell.pk: decision
            for cell, decision in zip(competitors, decisions, strict=True)
            if decision and not cell.decided
        }
    for cell, last_index in _get_last_indexes(cells):
        if cell.pk not in decided and (decision := _find_other_reason(cell, last_index, run.trials_per_cell)):
            decided[cell.pk] = decision
    return decided


def _group_competitors(run: Run, cells: Sequence[Cell], rule: StoppingRule) -> Iterator[list[Cell]]:
    """Yield the cells that are decided together.

    With rule "best", these are all cells of a scenario that have sequential stopping, including those that are decided
    already. With any other rule, each of the given cells is decided alone.
    """
    if rule.rule != "best":
        yield from ([cell] for cell in cells)
        return
    competitors: dict[str, list[Cell]] = defaultdict(list)
    for cell in run.cells.filter(error__isnull=False, scenario__in={cell.scenario for cell in cells}).order_by("pk"):
        competitors[cell.scenario].append(cell)
    yield from competitors.values()


def _build_count(cell: Cell, rule: StoppingRule) -> CellCount:
    """Return the number of passed trials and of all trials that the rate of the rule counts."""
    assert cell.error is not None
    tally = tally_cells([cell])
    if rule.rate == "given":
        return CellCount(tally.passed, tally.answered, cell.error)
    return CellCount(tally.passed - tally.late_passes, tally.tried, cell.error)


def _get_last_indexes(cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """Return each cell with the largest index of its trials; 0 without trials."""
    rows = Cell.objects.filter(pk__in=[cell.pk for cell in cells]).values_list("pk")
    last_indexes = dict(rows.annotate(last=Max("trials__index")))
    return [(cell, last_indexes[cell.pk] or 0) for cell in cells]


def _find_other_reason(cell: Cell, last_index: int, max_trials: int) -> str:
    """Return why an undecided cell gets no more trials; "" if it gets more."""
    if tally_cells([cell]).repeating_cells:
        return ANSWERS_REPEAT
    if cell.config.provider_id is None:
        return PROVIDER_DELETED
    return LIMIT_REACHED if last_index >= max_trials else ""


def _iter_round(run: Run, cells: Sequence[Cell]) -> Iterator[Trial]:
    """Yield the trials of the next round, block by block, positioned after all trials of the run.

    The order in a block is drawn from the run's order seed. Cells get at most `trials_per_cell` trials.
    """
    last_indexes = {cell.pk: index for cell, index in _get_last_indexes(cells)}
    position = (run.trials.aggregate(last=Max("position"))["last"] or 0) + 1
    generator = random.Random(derive_seed(run.order_seed, "round", position))
    for number in range(1, ANALYSIS_STEP_TRIALS + 1):
        block = [cell for cell in cells if last_indexes[cell.pk] + number <= run.trials_per_cell]
        generator.shuffle(block)
        for cell in block:
            yield build_trial(run, cell, last_indexes[cell.pk] + number, position=position, applicable=True)
            position += 1
