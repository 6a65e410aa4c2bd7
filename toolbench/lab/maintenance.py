"""Making good what was lost: leases of killed workers, wake-ups, counts. Safe to run anywhere, any time, by many."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from toolbench.lab.endpoints.probe_storage import requeue_lost_probes
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.planning.auto_method import decide_all_waiting_methods
from toolbench.lab.replays.queue import list_waiting_replays
from toolbench.lab.runs.sequential_stopping import analyse_undecided_runs
from toolbench.lab.worker.completion import cancel_queued, end_orphans, finish_runs, reopen_runs
from toolbench.lab.worker.job_failures import forget_failures, recorded
from toolbench.lab.worker.notify import wake, wake_probes, wake_replays
from toolbench.lab.worker.request_budget import correct_requests, pause_spent

_CELLS_PER_SWEEP = 2000
_CELLS_PER_LOOK = 200

_EXPIRE = """
WITH lost AS (
    SELECT id FROM lab_trial WHERE state = 'running' AND lease_until < clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false
FROM lost WHERE trial.id = lost.id RETURNING trial.cell_id
"""

_WAITING = """
SELECT provider.id FROM lab_provider AS provider WHERE EXISTS (
    SELECT 1 FROM lab_run AS run WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_CANCELLED = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted(id) LEFT JOIN lab_run AS run ON run.id = wanted.id
WHERE run.id IS NULL OR run.state IN ('cancelling', 'cancelled')
"""

_FORGET = (
    "DELETE FROM lab_signinlink WHERE expires_at < clock_timestamp() - interval '7 days'",
    "DELETE FROM lab_process WHERE seen_at < clock_timestamp() - interval '1 day'",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sweep or a look. `job` names it on /health/ when it fails; the other parts are done all the same."""

    job: str
    verb: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: trials queued again, trials ended unbegun, runs paused at a cap, runs finished, cells
    recomputed, providers woken. A part that failed did nothing."""

    expired: int
    ended: int
    paused: int
    finished: int
    recomputed: int
    woken: tuple[int, ...]


def sweep() -> Swept:
    """Raises one of AWAY when the database cannot be reached."""
    did = _do(SWEEP)
    return Swept(
        expired=did.get(_REQUEUE.job, 0),
        ended=did.get(_CANCEL.job, 0) + did.get(_ORPHANS.job, 0),
        paused=len(did.get(_PAUSE.job, ())),
        finished=len(did.get(_FINISH.job, ())),
        recomputed=did.get(_RECOMPUTE.job, 0),
        woken=did.get(_WAKE.job, ()),
    )


def look(run_ids: Collection[int]) -> tuple[int, ...]:
    """The small sweep of a shift: continues open cells, ends runs, recomputes cells, and gives those of `run_ids` that
    are cancelled. Raises one of AWAY when the database cannot be reached."""
    hear = Part("hearing of cancelled runs", lambda: _cancelled(run_ids))
    did = _do((hear, *LOOK))
    return tuple(did.get(hear.job, ()))


def _do(parts: Iterable[Part]) -> dict[str, Any]:
    """Do every part; give what came of those that did not fail, by job."""
    did: dict[str, Any] = {}
    for part in parts:
        with recorded(part.job):
            did[part.job] = part.verb()
    return did


def _cancelled(run_ids: Collection[int]) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_CANCELLED, [list(run_ids)])
        cancelled = tuple(row[0] for row in cursor.fetchall())
    if cancelled:
        cancel_queued()
    return cancelled


def providers_waiting() -> tuple[int, ...]:
    """Providers with queued trials of running runs."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        return tuple(row[0] for row in cursor.fetchall())


def _expire() -> int:
    """Queues trials whose lease ran out; their execution number stays, so their steps stay as abandoned ones."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EXPIRE)
        cells = [row[0] for row in cursor.fetchall()]
        mark_stale(cells)
    return len(cells)


def _forget() -> None:
    with connection.cursor() as cursor:
        for statement in _FORGET:
            cursor.execute(statement)
    forget_failures()


def _recompute_some() -> int:
    """Recompute what a look has time for, and correct the counts of requests where that changed a cell."""
    recomputed = recompute_stale(_CELLS_PER_LOOK)
    if recomputed:
        correct_requests()
    return recomputed


def _wake_waiting() -> tuple[int, ...]:
    waiting = providers_waiting()
    wake(waiting)
    return waiting


_REQUEUE = Part("requeueing lost trials", _expire)
_CANCEL = Part("ending cancelled trials", cancel_queued)
_ORPHANS = Part("ending trials of deleted providers", end_orphans)
_RECOMPUTE = Part("recomputing cells", lambda: recompute_stale(_CELLS_PER_SWEEP))
_WAKE = Part("waking providers", _wake_waiting)
_UNDECIDED = Part("continuing undecided runs", analyse_undecided_runs)
_PAUSE = Part("pausing runs at a limit", pause_spent)
_FINISH = Part("finishing runs", finish_runs)

# In this order: what ends trials comes before what counts them, and that before what ends runs.
SWEEP = (
    _REQUEUE,
    _CANCEL,
    _ORPHANS,
    _UNDECIDED,
    _RECOMPUTE,
    Part("correcting counts of requests", correct_requests),
    _PAUSE,
    _FINISH,
    Part("reopening runs", reopen_runs),
    Part("forgetting old rows", _forget),
    Part("waking probes", lambda: wake_probes(requeue_lost_probes())),
    Part("waking replays", lambda: wake_replays(list_waiting_replays())),
    Part("choosing methods after a probe", decide_all_waiting_methods),
    _WAKE,
)
LOOK = (
    _UNDECIDED,
    _PAUSE,
    Part(_RECOMPUTE.job, _recompute_some),
    _FINISH,
)
