"""Request budget of a run: each request is counted in the database before it is sent, and none exceeds the limits."""

from dataclasses import dataclass

from django.db import connection

from toolbench.lab.models import Run
from toolbench.lab.sql import load_statement
from toolbench.lab.worker import database_thread

# The number of requests that most trials send, counted with the claim. If the run has a request limit, they are counted
# only while MIN_SPARE_REQUESTS more are left for every trial in flight: near the limit, requests counted for one trial
# could be those that another trial needs. With a token limit they are never counted at the claim, since that limit is
# checked before every request.
REQUESTS_RESERVED_AT_CLAIM = 3
MIN_SPARE_REQUESTS = 12
_UNFINISHED_STATES = [Run.State.RUNNING, Run.State.PAUSED, Run.State.CANCELLING]

# For the reasons that worker/sql/reserve_requests.sql gives, counts at a claim are on disk before anything is sent.
ENABLE_SYNCHRONOUS_COMMIT = "SELECT set_config('synchronous_commit', 'on', true)"

_RESERVE = load_statement("worker/reserve_requests")

_RESERVE_AT_CLAIM = load_statement("worker/reserve_at_claim")

_RECONCILE = """
UPDATE lab_run SET tokens_used = tokens_used + %s, requests_reserved = requests_reserved - %s WHERE id = %s
"""

_CORRECT_REQUEST_COUNTS = load_statement("worker/correct_request_counts")

_PAUSE_RUNS_AT_LIMIT = load_statement("worker/pause_runs_at_limit")


@dataclass(frozen=True, slots=True)
class Reservation:
    """The number of requests that may be sent. If it is 0, `cancelled` tells a cancelled run from a reached limit."""

    requests: int
    cancelled: bool = False


def reserve(run_id: int, requests: int) -> Reservation:
    """Count up to `requests` requests against the limits of the run with one conditional update.

    Trials of a paused run may continue; those of a cancelled or deleted run may not.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, {"run": run_id, "wanted": requests})
        row = cursor.fetchone()
    if row is None:
        return Reservation(0, cancelled=True)
    granted, state = row
    return Reservation(int(granted), cancelled=state not in ("running", "paused"))


def reserve_at_claim(run_id: int, trials: int, *, in_flight: int) -> int:
    """Count the first requests of newly claimed trials against the run's request limit, all or none.

    Call it in the transaction that claims them: the count is on disk before a request is sent.

    Returns:
        The number of requests that each trial has.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE_AT_CLAIM,
            {"run": run_id, "wanted": REQUESTS_RESERVED_AT_CLAIM * trials, "spare": MIN_SPARE_REQUESTS * in_flight},
        )
        return REQUESTS_RESERVED_AT_CLAIM if cursor.fetchone() else 0


def reconcile(run_id: int, *, tokens: int, unsent: int) -> None:
    """Add the tokens of answers and subtract requests that were counted and never sent.

    Call it in the transaction that stores those answers and outcomes, so that each is counted once. Call it
    last in that transaction, since it locks the run and reservations wait for the lock.
    """
    if tokens or unsent:
        with connection.wrap_database_errors:
            database_thread.open_cursor().execute(_RECONCILE, [tokens, unsent, run_id])


def correct_request_counts(run_id: int | None = None) -> tuple[int, ...]:
    """Raise counts of requests that are below the number of stored attempts.

    A crash of a database server that forgets commits can leave such counts. Call it after stale cells were recomputed.

    Args:
        run_id: the run to correct; None for every run that has not ended.

    Returns:
        The ids of the corrected runs.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CORRECT_REQUEST_COUNTS, {"run": run_id, "open": _UNFINISHED_STATES})
        return tuple(row[0] for row in cursor.fetchall())


def pause_runs_at_limit() -> tuple[int, ...]:
    """Pause runs that reached a limit and have queued trials; store the reason and return their ids."""
    with connection.cursor() as cursor:
        cursor.execute(_PAUSE_RUNS_AT_LIMIT)
        return tuple(row[0] for row in cursor.fetchall())
