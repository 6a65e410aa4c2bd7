"""Request budget of a run: each request is counted against the limits of the run before it is sent."""

from dataclasses import dataclass

from django.db import connection

from toolbench.lab.models import Run
from toolbench.lab.sql import load_statement
from toolbench.lab.worker import database_thread

# Number of requests that most trials send. They are counted with the claim, so that most trials need no reservation
# later. If the run has a request limit, they are counted only if MIN_SPARE_REQUESTS more remain for every trial in
# flight: near the limit, requests that are counted for one trial may be missing for another. If the run has a token
# limit, they are not counted with the claim, since that limit is checked before every request.
REQUESTS_RESERVED_AT_CLAIM = 3
MIN_SPARE_REQUESTS = 12
_UNFINISHED_STATES = [Run.State.RUNNING, Run.State.PAUSED, Run.State.CANCELLING]

# Counts of a claim are on disk before its requests are sent; worker/sql/reserve_requests.sql gives the reasons.
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
    """Result of a reservation.

    Attributes:
        requests: number of requests that may be sent.
        is_cancelled: whether the run does not exist or is neither running nor paused. If it is False, 0 requests mean
            that a limit is reached.
    """

    requests: int
    is_cancelled: bool = False


def reserve(run_id: int, requests: int) -> Reservation:
    """Count up to `requests` requests against the limits of the run with one conditional update.

    Trials of a paused run may continue; those of a run that was cancelled, has ended or does not exist may not.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, {"run": run_id, "wanted": requests})
        row = cursor.fetchone()
    if row is None:
        return Reservation(0, is_cancelled=True)
    granted, state = row
    return Reservation(int(granted), is_cancelled=state not in ("running", "paused"))


def reserve_at_claim(run_id: int, trial_count: int, *, in_flight: int) -> int:
    """Count the first requests of newly claimed trials against the run's request limit, all or none.

    Call it in the transaction that claims the trials.

    Args:
        run_id: the run of the trials.
        trial_count: number of claimed trials.
        in_flight: number of trials of the provider in flight after the claim.

    Returns:
        The number of requests that are counted for each trial: REQUESTS_RESERVED_AT_CLAIM, or 0 if too few remain or
        the run has a token limit.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE_AT_CLAIM,
            {
                "run": run_id,
                "wanted": REQUESTS_RESERVED_AT_CLAIM * trial_count,
                "spare": MIN_SPARE_REQUESTS * in_flight,
            },
        )
        return REQUESTS_RESERVED_AT_CLAIM if cursor.fetchone() else 0


def reconcile(run_id: int, *, tokens: int, unsent: int) -> None:
    """Correct the counts of a run: add the tokens of answers and subtract requests that were not sent.

    Call it in the transaction that stores those answers and outcomes, so that each is counted once. Call it at the end
    of that transaction, since it locks the run and reservations wait for the lock.
    """
    if tokens or unsent:
        with connection.wrap_database_errors:
            database_thread.open_cursor().execute(_RECONCILE, [tokens, unsent, run_id])


def correct_request_counts(run_id: int | None = None) -> tuple[int, ...]:
    """Raise the request count of each run with more stored attempts than counted requests.

    A database server that loses commits in a crash can leave a count that is too low. Call this after stale cells were
    recomputed.

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
