"""Ending and reopening of runs, and ending of queued trials whose run was cancelled or whose provider was deleted."""

from django.db import connection, transaction

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.metrics.cells import recompute_immediately
from toolbench.lab.sql import load_statement

_IS_RUN_FINISHED = load_statement("worker/is_run_finished")
_LOCK_FINISHED = load_statement("worker/lock_finished_runs", is_finished=_IS_RUN_FINISHED)
_FINISH_RUNS = load_statement("worker/finish_runs", is_finished=_IS_RUN_FINISHED)

_REOPEN_RUNS = load_statement("worker/reopen_runs")

_CANCEL_QUEUED_TRIALS = load_statement("worker/cancel_queued_trials")

_END_ORPHANED_TRIALS = load_statement("worker/end_orphaned_trials")


def finish_runs() -> tuple[int, ...]:
    """End every run whose trials are done and whose cells are final; return the ids of the ended runs.

    A cell is final once it is recomputed and, with sequential stopping, decided. The cells of a run that is being
    cancelled need not be decided.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_FINISHED)
        locked_run_ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(_FINISH_RUNS, [locked_run_ids])
        return tuple(row[0] for row in cursor.fetchall())


def reopen_runs() -> tuple[int, ...]:
    """Set the state of finished runs to running if they have trials that are not done; return the ids of these runs.

    Deleted runs stay finished.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REOPEN_RUNS)
        return tuple(row[0] for row in cursor.fetchall())


def cancel_queued_trials() -> int:
    """End queued trials of runs that are being cancelled or were cancelled.

    A trial can still be queued in a cancelled run if it was requeued after the run had ended.

    Returns:
        The number of trials.
    """
    return _end_trials(_CANCEL_QUEUED_TRIALS)


def end_orphaned_trials() -> int:
    """End queued trials of deleted providers as infrastructure errors; return their number."""
    return _end_trials(_END_ORPHANED_TRIALS, read_taxonomy_version())


def _end_trials(sql: str, *values: int) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, values)
        cell_ids = [row[0] for row in cursor.fetchall()]
        recompute_immediately(cell_ids)
    return len(cell_ids)
