"""Maintenance: the sweep, which repairs lost work and deletes old rows, and the frequent check of worker sessions.

Any number of processes may run both at the same time.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.installation import build_log_path
from toolbench.lab.endpoints.probe_storage import requeue_lost_probes
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.planning.auto_method import decide_all_waiting_methods
from toolbench.lab.replays.queue import list_waiting_replays
from toolbench.lab.runs.sequential_stopping import analyse_undecided_runs
from toolbench.lab.serving.traces import delete_old_traces
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts
from toolbench.lab.worker.claims import MAX_LEASE_LOSSES
from toolbench.lab.worker.completion import cancel_queued_trials, end_orphaned_trials, finish_runs, reopen_runs
from toolbench.lab.worker.job_failures import delete_old_failures, record_failures
from toolbench.lab.worker.queue import notify_workers, notify_workers_of_probes, notify_workers_of_replays
from toolbench.lab.worker.request_budget import correct_request_counts, pause_runs_at_limit

_CELLS_PER_SWEEP = 2000
_CELLS_PER_CHECK = 200
_MAX_TRACE_TEXT_SECONDS = 5.0  # of one sweep, because gateway traces with bodies of 1 MB take long to process

_REQUEUE_EXPIRED = load_statement("worker/requeue_expired")
_LOST_TOO_OFTEN = (
    f"This trial lost its worker {MAX_LEASE_LOSSES} times: the process was killed, crashed or did not answer for too "
    "long. No other trial of the provider ran in its last executions. The steps of all executions are kept. "
    "Look for a crash or a lack of memory in the logs of the system and of the worker, then retry the infrastructure "
    f"errors of the run. The logs of workers are in {build_log_path()}."
)

_SELECT_WAITING_PROVIDERS = """
SELECT provider.id FROM lab_provider AS provider WHERE EXISTS (
    SELECT 1 FROM lab_run AS run WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_SELECT_CANCELLED_RUNS = """
SELECT requested.id FROM unnest(%s::bigint[]) AS requested(id) LEFT JOIN lab_run AS run ON run.id = requested.id
WHERE run.id IS NULL OR run.state IN ('cancelling', 'cancelled')
"""

_DELETE_OLD_ROWS = (
    "DELETE FROM lab_signinlink WHERE expires_at < clock_timestamp() - interval '7 days'",
    "DELETE FROM lab_process WHERE seen_at < clock_timestamp() - interval '1 day'",
    "DELETE FROM lab_claimingworker WHERE seen_at < clock_timestamp() - interval '1 day'",
    "DELETE FROM lab_spendingwriter WHERE stored_at < clock_timestamp() - interval '7 days'",
)


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """A step of the sweep or of the frequent check. If it fails, the other steps still run.

    Attributes:
        job: the name under which /health/ shows failures of the step.
        action: does the work.
    """

    job: str
    action: Callable[[], object]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Results of a sweep; the result of a step that failed is 0 or ().

    Attributes:
        expired: number of trials whose lease had expired; each was requeued, or ended after MAX_LEASE_LOSSES losses.
        ended: number of queued trials that were ended because their run was cancelled or their provider was deleted.
        paused: number of runs that were paused at a limit.
        finished: number of runs that were finished.
        recomputed: number of cells that were recomputed.
        notified: ids of the providers whose workers were notified.
    """

    expired: int
    ended: int
    paused: int
    finished: int
    recomputed: int
    notified: tuple[int, ...]


def sweep(*, with_counts: bool = True) -> SweepResult:
    """Run the steps of SWEEP_STEPS in their order.

    Args:
        with_counts: whether to run those in COUNT_STEPS too; their time grows with the number of trials in a cell.

    Raises:
        django.db.Error: the database is unavailable.
    """
    results = _run_steps(step for step in SWEEP_STEPS if with_counts or step not in COUNT_STEPS)
    return SweepResult(
        expired=results.get(_REQUEUE.job, 0),
        ended=results.get(_CANCEL.job, 0) + results.get(_ORPHANS.job, 0),
        paused=len(results.get(_PAUSE.job, ())),
        finished=len(results.get(_FINISH.job, ())),
        recomputed=results.get(_RECOMPUTE.job, 0),
        notified=results.get(_NOTIFY.job, ()),
    )


def check_runs(run_ids: Collection[int], *, with_counts: bool = True) -> tuple[int, ...]:
    """Run the frequent check of a worker session: find cancelled runs, pause runs at a limit, then run CHECK_STEPS.

    Args:
        run_ids: the runs whose trials the session is running.
        with_counts: whether to run CHECK_STEPS too; their time grows with the number of trials in a cell.

    Returns:
        The ids of those runs that were cancelled, are being cancelled or no longer exist.

    Raises:
        django.db.Error: the database is unavailable.
    """
    find_cancelled = MaintenanceStep("finding cancelled runs", lambda: _find_cancelled_runs(run_ids))
    results = _run_steps((find_cancelled, _PAUSE, *(CHECK_STEPS if with_counts else ())))
    return tuple(results.get(find_cancelled.job, ()))


def _run_steps(steps: Iterable[MaintenanceStep]) -> dict[str, Any]:
    """Run every step and return the results by job; a step that failed has none."""
    results: dict[str, Any] = {}
    for step in steps:
        with record_failures(step.job):
            results[step.job] = step.action()
    return results


def _find_cancelled_runs(run_ids: Collection[int]) -> tuple[int, ...]:
    """Return the ids of those runs that were cancelled, are being cancelled or no longer exist.

    If there are any, the queued trials of all cancelled runs are ended.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_CANCELLED_RUNS, [list(run_ids)])
        cancelled_ids = tuple(row[0] for row in cursor.fetchall())
    if cancelled_ids:
        cancel_queued_trials()
    return cancelled_ids


def list_waiting_providers() -> tuple[int, ...]:
    """Return the ids of the providers with queued trials of running runs."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_WAITING_PROVIDERS)
        return tuple(row[0] for row in cursor.fetchall())


def _requeue_expired() -> int:
    """Requeue trials whose lease has expired, or end those that lost it MAX_LEASE_LOSSES times; return their number.

    A trial keeps its execution number until it is claimed again. The steps of the lost execution keep that number.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _REQUEUE_EXPIRED,
            {"max_losses": MAX_LEASE_LOSSES, "sentence": _LOST_TOO_OFTEN, "taxonomy": read_taxonomy_version()},
        )
        cell_ids = [row[0] for row in cursor.fetchall()]
        mark_stale(cell_ids)
    return len(cell_ids)  # each trial returns its cell, so an id may be in the list several times


def _update_trace_texts() -> int:
    return update_search_texts(GATEWAY_TRACES, max_seconds=_MAX_TRACE_TEXT_SECONDS)


def _delete_old_rows() -> None:
    with connection.cursor() as cursor:
        for delete_sql in _DELETE_OLD_ROWS:
            cursor.execute(delete_sql)
    delete_old_failures()


def _recompute_stale_cells() -> int:
    """Recompute up to _CELLS_PER_CHECK stale cells and return their number.

    If there were any, request counts are corrected afterwards.
    """
    recomputed = recompute_stale(_CELLS_PER_CHECK)
    if recomputed:
        correct_request_counts()
    return recomputed


def _notify_waiting_providers() -> tuple[int, ...]:
    provider_ids = list_waiting_providers()
    notify_workers(provider_ids)
    return provider_ids


_REQUEUE = MaintenanceStep("requeueing lost trials", _requeue_expired)
_CANCEL = MaintenanceStep("ending cancelled trials", cancel_queued_trials)
_ORPHANS = MaintenanceStep("ending trials of deleted providers", end_orphaned_trials)
_RECOMPUTE = MaintenanceStep("recomputing cells", lambda: recompute_stale(_CELLS_PER_SWEEP))
_CORRECT = MaintenanceStep("correcting counts of requests", correct_request_counts)
_NOTIFY = MaintenanceStep("notifying workers of trials", _notify_waiting_providers)
_UNDECIDED = MaintenanceStep("continuing undecided runs", analyse_undecided_runs)
_PAUSE = MaintenanceStep("pausing runs at a limit", pause_runs_at_limit)
_FINISH = MaintenanceStep("finishing runs", finish_runs)

# The order matters: steps that end trials come before steps that count trials, and these before steps that end runs.
SWEEP_STEPS = (
    _REQUEUE,
    _CANCEL,
    _ORPHANS,
    _UNDECIDED,
    _RECOMPUTE,
    _CORRECT,
    _PAUSE,
    _FINISH,
    MaintenanceStep("reopening runs", reopen_runs),
    MaintenanceStep("writing search texts", update_search_texts),
    MaintenanceStep("writing search texts of gateway traces", _update_trace_texts),
    MaintenanceStep("pooling the cells of ended runs", refresh_pools),
    MaintenanceStep("deleting old rows", _delete_old_rows),
    MaintenanceStep("deleting old traces of the gateway", delete_old_traces),
    MaintenanceStep("notifying workers of probes", lambda: notify_workers_of_probes(requeue_lost_probes())),
    MaintenanceStep("notifying workers of replays", lambda: notify_workers_of_replays(list_waiting_replays())),
    MaintenanceStep("choosing methods after a probe", decide_all_waiting_methods),
    _NOTIFY,
)
COUNT_STEPS = (_RECOMPUTE, _CORRECT)
CHECK_STEPS = (
    _UNDECIDED,
    MaintenanceStep(_RECOMPUTE.job, _recompute_stale_cells),
    _FINISH,
)
