"""The run's money: every request is counted in the database before it is sent, and none is sent above the caps."""

from dataclasses import dataclass

from django.db import connection

from toolbench.lab.models import Run
from toolbench.lab.worker import pipeline

# Requests that a trial mostly sends, counted with its claim. Of a run with a cap on requests only while SPARE more are
# left for every trial in flight: near the cap, what is counted ahead for one trial could be what another needs. Never
# with a cap on tokens, which is looked at before every request.
REQUESTS_RESERVED_AT_CLAIM = 3
MIN_SPARE_REQUESTS = 12
_UNFINISHED_STATES = [Run.State.RUNNING, Run.State.PAUSED, Run.State.CANCELLING]

# What is counted is on disk before it is sent, also at a server that does not wait for the disk otherwise. That holds
# without a cap too: a trial that was claimed without one may still send when a cap is set, and what a crash made the
# server forget would be sent beyond it.
_SYNCHRONOUS_COMMIT = "set_config('synchronous_commit', 'on', true)"
ENABLE_SYNCHRONOUS_COMMIT = f"SELECT {_SYNCHRONOUS_COMMIT}"

_RESERVE = f"""
WITH before AS (
    SELECT id, state, {_SYNCHRONOUS_COMMIT},
        CASE WHEN state NOT IN ('running', 'paused') OR tokens_used >= token_cap THEN 0
             ELSE greatest(0, least(%(wanted)s, coalesce(request_cap - requests_reserved, %(wanted)s))) END AS granted
    FROM lab_run WHERE id = %(run)s FOR NO KEY UPDATE
)
UPDATE lab_run AS run SET requests_reserved = run.requests_reserved + before.granted
FROM before WHERE run.id = before.id
RETURNING before.granted, before.state
"""

_RESERVE_AT_CLAIM = """
UPDATE lab_run SET requests_reserved = requests_reserved + %(wanted)s
WHERE id = %(run)s AND token_cap IS NULL AND request_cap - requests_reserved >= %(wanted)s + %(spare)s
RETURNING id
"""

_RECONCILE = """
UPDATE lab_run SET tokens_used = tokens_used + %s, requests_reserved = requests_reserved - %s WHERE id = %s
"""

# Cells count the attempts that are stored, those of lost executions included; of a cell that was set aside, whose sums
# are unknown, they are counted here. One run must not keep the others from being corrected: a sum that the column
# cannot hold is cut.
_CORRECT_REQUEST_COUNTS = """
WITH stored AS (
    SELECT run_id, least(sum(CASE WHEN compute_error = '' THEN requests ELSE (
        SELECT count(*) FROM lab_trial AS trial JOIN lab_step AS step ON step.trial_id = trial.id
        WHERE trial.cell_id = cell.id AND step.kind = 'exchange') END), 2147483647) AS requests
    FROM lab_cell AS cell
    WHERE run_id IN (SELECT id FROM lab_run WHERE id = %(run)s OR %(run)s IS NULL AND state = ANY(%(open)s))
    GROUP BY run_id
), low AS (
    SELECT run.id, stored.requests FROM lab_run AS run JOIN stored ON stored.run_id = run.id
    WHERE run.requests_reserved < stored.requests ORDER BY run.id FOR NO KEY UPDATE OF run
)
UPDATE lab_run AS run SET requests_reserved = greatest(run.requests_reserved, low.requests)
FROM low WHERE run.id = low.id RETURNING run.id
"""

_PAUSE_RUNS_AT_LIMIT = """
UPDATE lab_run AS run SET state = 'paused', stopped_reason = CASE
    WHEN requests_reserved >= request_cap
        THEN format('The cap of %s requests is reached. Raise the cap and resume.', request_cap)
    ELSE format('The cap of %s tokens is reached. Raise the cap and resume.', token_cap) END
WHERE state = 'running' AND (requests_reserved >= request_cap OR tokens_used >= token_cap)
    AND EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state = 'queued')
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Reservation:
    """How many of the requests asked for may be sent; `cancelled` says why none may be, else it is a cap."""

    requests: int
    cancelled: bool = False


def reserve(run_id: int, wanted: int) -> Reservation:
    """Counts up to `wanted` requests against the run's caps, by one conditional update. A paused run's trials may go
    on; a cancelled or deleted run's may not."""
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, {"run": run_id, "wanted": wanted})
        row = cursor.fetchone()
    if row is None:
        return Reservation(0, cancelled=True)
    granted, state = row
    return Reservation(int(granted), cancelled=state not in ("running", "paused"))


def reserve_at_claim(run_id: int, trials: int, *, in_flight: int) -> int:
    """Counts the first requests of `trials` newly claimed trials against the run's cap on requests, all or none; gives
    how many each has. To be called in the transaction that claims them, which then is on disk before they are sent."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE_AT_CLAIM,
            {"run": run_id, "wanted": REQUESTS_RESERVED_AT_CLAIM * trials, "spare": MIN_SPARE_REQUESTS * in_flight},
        )
        return REQUESTS_RESERVED_AT_CLAIM if cursor.fetchone() else 0


def reconcile(run_id: int, *, tokens: int, unused: int) -> None:
    """Adds what answers cost and takes off requests that were counted and never sent. To be called in the transaction
    that stores those answers and ends, so that it counts once; and last in it, since reservations wait for it."""
    if tokens or unused:
        with connection.wrap_database_errors:
            pipeline.open_cursor().execute(_RECONCILE, [tokens, unused, run_id])


def correct_request_counts(run_id: int | None = None) -> tuple[int, ...]:
    """Raise counts of requests that are below the number of stored attempts, as a crash of a server that forgets
    commits may leave them.

    Call it after stale cells were recomputed.

    Args:
        run_id: the run to correct; None for every run that has not ended.

    Returns:
        The ids of the runs that were corrected.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CORRECT_REQUEST_COUNTS, {"run": run_id, "open": _UNFINISHED_STATES})
        return tuple(row[0] for row in cursor.fetchall())


def pause_runs_at_limit() -> tuple[int, ...]:
    """Pauses runs that have work left and a cap reached, with the reason; returns their ids."""
    with connection.cursor() as cursor:
        cursor.execute(_PAUSE_RUNS_AT_LIMIT)
        return tuple(row[0] for row in cursor.fetchall())
