"""Ends that nobody drives: runs whose last trial is done, trials that were cancelled or lost their provider while they
waited."""

from django.db import connection, transaction

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.metrics.cells import recompute_immediately
from toolbench.lab.sql import statement

_IS_RUN_FINISHED = statement("worker/is_run_finished")
_LOCK_FINISHED = statement("worker/lock_finished_runs", is_finished=_IS_RUN_FINISHED)
_FINISH_RUNS = statement("worker/finish_runs", is_finished=_IS_RUN_FINISHED)

_REOPEN_RUNS = statement("worker/reopen_runs")

_CANCEL_QUEUED_TRIALS = statement("worker/cancel_queued_trials")

_END_ORPHANED_TRIALS = statement("worker/end_orphaned_trials")


def finish_runs() -> tuple[int, ...]:
    """Ends every run that has nothing left to do, and no cell left to count or to decide; returns their ids."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_FINISHED)
        locked = [row[0] for row in cursor.fetchall()]
        cursor.execute(_FINISH_RUNS, [locked])
        return tuple(row[0] for row in cursor.fetchall())


def reopen_runs() -> tuple[int, ...]:
    """Runs that were ended although they have trials to do go on; returns their ids."""
    with connection.cursor() as cursor:
        cursor.execute(_REOPEN_RUNS)
        return tuple(row[0] for row in cursor.fetchall())


def cancel_queued_trials() -> int:
    """Ends queued trials of runs that are being cancelled, or were while their trial was given back."""
    return _end_trials(_CANCEL_QUEUED_TRIALS)


def end_orphaned_trials() -> int:
    """Ends queued trials whose provider is gone: the world's failure, not the model's."""
    return _end_trials(_END_ORPHANED_TRIALS, read_taxonomy_version())


def _end_trials(statement: str, *values: int) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        cells = [row[0] for row in cursor.fetchall()]
        recompute_immediately(cells)
    return len(cells)
