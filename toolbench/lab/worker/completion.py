"""Ends that nobody drives: runs whose last trial is done, trials that were cancelled or lost their provider while they
waited."""

from django.db import connection, transaction

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.metrics.cells import recompute_immediately

# Every trial done, every cell counted and, where its number of trials was left open, decided. A page that finds its run
# ended asks no more, so what it shows then has to be the last.
_IS_RUN_FINISHED = """
state IN ('running', 'paused', 'cancelling')
    AND NOT EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state <> 'done')
    AND NOT EXISTS (SELECT 1 FROM lab_cell WHERE run_id = run.id
        AND (stale OR run.state <> 'cancelling' AND error IS NOT NULL AND decided = ''))
"""

# Locked by a statement of their own, since whoever queues trials again holds the run: the next statement sees them.
_LOCK_FINISHED = f"SELECT id FROM lab_run AS run WHERE {_IS_RUN_FINISHED} ORDER BY id FOR NO KEY UPDATE"

_FINISH_RUNS = f"""
UPDATE lab_run AS run SET finished_at = clock_timestamp(),
    state = CASE WHEN state = 'cancelling' THEN 'cancelled' ELSE 'finished' END
WHERE id = ANY(%s) AND {_IS_RUN_FINISHED} RETURNING id
"""

_REOPEN_RUNS = """
UPDATE lab_run AS run SET finished_at = NULL, state = 'running', stopped_reason = ''
WHERE state = 'finished' AND deleted_at IS NULL AND id IN (SELECT run_id FROM lab_trial WHERE state <> 'done')
RETURNING id
"""

_CANCEL_QUEUED_TRIALS = """
WITH ended AS (
    SELECT trial.id FROM lab_trial AS trial JOIN lab_run AS run ON run.id = trial.run_id
    WHERE trial.state = 'queued' AND run.state IN ('cancelling', 'cancelled')
    FOR NO KEY UPDATE OF trial SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'done', outcome = 'cancelled', "end" = 'CANCELLED', failure_class = 'cancelled',
    sentence = 'The run was cancelled before this trial began.', finished_at = clock_timestamp()
FROM ended WHERE trial.id = ended.id RETURNING trial.cell_id
"""

_END_ORPHANED_TRIALS = """
WITH ended AS (
    SELECT trial.id FROM lab_trial AS trial WHERE trial.state = 'queued' AND trial.provider_id IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'done', outcome = 'infra', "end" = 'PROVIDER_ERROR',
    failure_class = 'provider_deleted', sentence = 'The provider was deleted before this trial began.',
    signature = 'provider_deleted', cause = 'never_sent', taxonomy = %s, finished_at = clock_timestamp()
FROM ended WHERE trial.id = ended.id RETURNING trial.cell_id
"""


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
