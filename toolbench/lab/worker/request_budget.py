"""The run's money: every request is counted in the database before it is sent, and none is sent above the caps."""

from dataclasses import dataclass

from django.db import connection

from toolbench.lab.models import Run
from toolbench.lab.sql import statement
from toolbench.lab.worker import pipeline

# Requests that a trial mostly sends, counted with its claim. Of a run with a cap on requests only while SPARE more are
# left for every trial in flight: near the cap, what is counted ahead for one trial could be what another needs. Never
# with a cap on tokens, which is looked at before every request.
REQUESTS_RESERVED_AT_CLAIM = 3
MIN_SPARE_REQUESTS = 12
_UNFINISHED_STATES = [Run.State.RUNNING, Run.State.PAUSED, Run.State.CANCELLING]

# For the reasons that worker/sql/reserve_requests.sql gives, counts at a claim are on disk before anything is sent.
ENABLE_SYNCHRONOUS_COMMIT = "SELECT set_config('synchronous_commit', 'on', true)"

_RESERVE = statement("worker/reserve_requests")

_RESERVE_AT_CLAIM = statement("worker/reserve_at_claim")

_RECONCILE = """
UPDATE lab_run SET tokens_used = tokens_used + %s, requests_reserved = requests_reserved - %s WHERE id = %s
"""

_CORRECT_REQUEST_COUNTS = statement("worker/correct_request_counts")

_PAUSE_RUNS_AT_LIMIT = statement("worker/pause_runs_at_limit")


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
