"""Making good what was lost: leases of killed workers, wake-ups, counts. Safe to run anywhere, any time, by many."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection, transaction

from toolbench.lab.counts.cells import mark_stale, recompute_stale
from toolbench.lab.probes.probe_storing import queue_lost
from toolbench.lab.probes.routes import settle_all
from toolbench.lab.processes.waking import wake, wake_probes, wake_replays
from toolbench.lab.replays.replay_queue import waiting_replays
from toolbench.lab.runs.until import look_at_undecided
from toolbench.lab.trials.budget import pause_spent
from toolbench.lab.trials.finishing import cancel_queued, end_orphans, finish_runs, reopen_runs

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
class Swept:
    """What a sweep did: trials queued again, trials ended unbegun, runs paused at a cap, runs finished, cells
    recomputed, providers woken."""

    expired: int
    ended: int
    paused: int
    finished: int
    recomputed: int
    woken: tuple[int, ...]


def sweep() -> Swept:
    expired = _expire()
    ended = cancel_queued() + end_orphans()
    look_at_undecided()
    recomputed = recompute_stale(_CELLS_PER_SWEEP)
    paused = len(pause_spent())
    finished = len(finish_runs())
    reopen_runs()
    _forget()
    wake_probes(queue_lost())
    wake_replays(waiting_replays())
    settle_all()
    waiting = providers_waiting()
    wake(waiting)
    return Swept(expired, ended, paused, finished, recomputed, waiting)


def look(run_ids: Collection[int]) -> tuple[int, ...]:
    """The small sweep of a shift: continues open cells, ends runs, recomputes cells, and gives those of `run_ids` that
    are cancelled."""
    with connection.cursor() as cursor:
        cursor.execute(_CANCELLED, [list(run_ids)])
        cancelled = tuple(row[0] for row in cursor.fetchall())
    if cancelled:
        cancel_queued()
    look_at_undecided()
    pause_spent()
    recompute_stale(_CELLS_PER_LOOK)
    finish_runs()
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
