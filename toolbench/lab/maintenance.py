"""Repair what was lost: leases of killed workers, notifications, counts.

Any number of processes may run it at any time.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from toolbench.lab.endpoints.probe_storage import requeue_lost_probes
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.planning.auto_method import decide_all_waiting_methods
from toolbench.lab.replays.queue import list_waiting_replays
from toolbench.lab.runs.sequential_stopping import analyse_undecided_runs
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import update_search_texts
from toolbench.lab.worker.completion import cancel_queued_trials, end_orphaned_trials, finish_runs, reopen_runs
from toolbench.lab.worker.job_failures import delete_old_failures, record_failures
from toolbench.lab.worker.queue import notify_workers, notify_workers_of_probes, notify_workers_of_replays
from toolbench.lab.worker.request_budget import correct_request_counts, pause_runs_at_limit

_CELLS_PER_SWEEP = 2000
_CELLS_PER_CHECK = 200

_REQUEUE_EXPIRED = load_statement("worker/requeue_expired")

_SELECT_WAITING_PROVIDERS = """
SELECT provider.id FROM lab_provider AS provider WHERE EXISTS (
    SELECT 1 FROM lab_run AS run WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_SELECT_CANCELLED_RUNS = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted(id) LEFT JOIN lab_run AS run ON run.id = wanted.id
WHERE run.id IS NULL OR run.state IN ('cancelling', 'cancelled')
"""

_DELETE_OLD_ROWS = (
    "DELETE FROM lab_signinlink WHERE expires_at < clock_timestamp() - interval '7 days'",
    "DELETE FROM lab_process WHERE seen_at < clock_timestamp() - interval '1 day'",
)


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """A step of the sweep or of the frequent check.

    If it fails, `job` names it on /health/, and the other steps still run.
    """

    job: str
    action: Callable[[], object]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Results of a sweep; those of a step that failed are 0 or ().

    Attributes:
        expired: trials queued again.
        ended: trials ended before their first request.
        paused: runs paused at a limit.
        finished: runs finished.
        recomputed: cells recomputed.
        notified: providers whose workers were notified.
    """

    expired: int
    ended: int
    paused: int
    finished: int
    recomputed: int
    notified: tuple[int, ...]


def sweep() -> SweepResult:
    """Run every step of the full maintenance pass.

    Raises:
        django.db.Error: the database is unavailable.
    """
    did = _run_steps(SWEEP_STEPS)
    return SweepResult(
        expired=did.get(_REQUEUE.job, 0),
        ended=did.get(_CANCEL.job, 0) + did.get(_ORPHANS.job, 0),
        paused=len(did.get(_PAUSE.job, ())),
        finished=len(did.get(_FINISH.job, ())),
        recomputed=did.get(_RECOMPUTE.job, 0),
        notified=did.get(_NOTIFY.job, ()),
    )


def check_runs(run_ids: Collection[int]) -> tuple[int, ...]:
    """Run the frequent maintenance pass of a worker session and return those of `run_ids` that are cancelled.

    It continues undecided cells, ends runs and recomputes cells.

    Raises:
        django.db.Error: the database is unavailable.
    """
    hear = MaintenanceStep("hearing of cancelled runs", lambda: _list_cancelled_runs(run_ids))
    did = _run_steps((hear, *CHECK_STEPS))
    return tuple(did.get(hear.job, ()))


def _run_steps(parts: Iterable[MaintenanceStep]) -> dict[str, Any]:
    """Run every step and return the results of those that did not fail, by job."""
    did: dict[str, Any] = {}
    for part in parts:
        with record_failures(part.job):
            did[part.job] = part.action()
    return did


def _list_cancelled_runs(run_ids: Collection[int]) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_CANCELLED_RUNS, [list(run_ids)])
        cancelled = tuple(row[0] for row in cursor.fetchall())
    if cancelled:
        cancel_queued_trials()
    return cancelled


def list_waiting_providers() -> tuple[int, ...]:
    """Return the providers with queued trials of running runs."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_WAITING_PROVIDERS)
        return tuple(row[0] for row in cursor.fetchall())


def _requeue_expired() -> int:
    """Queue trials again whose lease ran out; their execution number stays, so their steps stay as lost ones."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_REQUEUE_EXPIRED)
        cells = [row[0] for row in cursor.fetchall()]
        mark_stale(cells)
    return len(cells)


def _delete_old_rows() -> None:
    with connection.cursor() as cursor:
        for statement in _DELETE_OLD_ROWS:
            cursor.execute(statement)
    delete_old_failures()


def _recompute_stale_cells() -> int:
    """Recompute as many cells as a frequent check has time for; correct counts of requests if a cell changed."""
    recomputed = recompute_stale(_CELLS_PER_CHECK)
    if recomputed:
        correct_request_counts()
    return recomputed


def _notify_waiting_providers() -> tuple[int, ...]:
    waiting = list_waiting_providers()
    notify_workers(waiting)
    return waiting


_REQUEUE = MaintenanceStep("requeueing lost trials", _requeue_expired)
_CANCEL = MaintenanceStep("ending cancelled trials", cancel_queued_trials)
_ORPHANS = MaintenanceStep("ending trials of deleted providers", end_orphaned_trials)
_RECOMPUTE = MaintenanceStep("recomputing cells", lambda: recompute_stale(_CELLS_PER_SWEEP))
_NOTIFY = MaintenanceStep("waking providers", _notify_waiting_providers)
_UNDECIDED = MaintenanceStep("continuing undecided runs", analyse_undecided_runs)
_PAUSE = MaintenanceStep("pausing runs at a limit", pause_runs_at_limit)
_FINISH = MaintenanceStep("finishing runs", finish_runs)

# In this order: what ends trials comes before what counts them, and that before what ends runs.
SWEEP_STEPS = (
    _REQUEUE,
    _CANCEL,
    _ORPHANS,
    _UNDECIDED,
    _RECOMPUTE,
    MaintenanceStep("correcting counts of requests", correct_request_counts),
    _PAUSE,
    _FINISH,
    MaintenanceStep("reopening runs", reopen_runs),
    MaintenanceStep("writing search texts", update_search_texts),
    MaintenanceStep("pooling the cells of ended runs", refresh_pools),
    MaintenanceStep("forgetting old rows", _delete_old_rows),
    MaintenanceStep("waking probes", lambda: notify_workers_of_probes(requeue_lost_probes())),
    MaintenanceStep("waking replays", lambda: notify_workers_of_replays(list_waiting_replays())),
    MaintenanceStep("choosing methods after a probe", decide_all_waiting_methods),
    _NOTIFY,
)
CHECK_STEPS = (
    _UNDECIDED,
    _PAUSE,
    MaintenanceStep(_RECOMPUTE.job, _recompute_stale_cells),
    _FINISH,
)
