"""Heartbeats of processes, and the health of the installation.

A process counts as alive if its last heartbeat is younger than HEARTBEAT_TIMEOUT. That it runs is not enough, since a
running process may receive no messages.
"""

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import Count, DurationField, ExpressionWrapper, F, QuerySet, Sum
from django.db.models.functions import Now

from toolbench.lab.models import Cell, JobFailure, Process, ServiceAddress, Trial
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.job_failures import list_recent_failures

HEARTBEAT_TIMEOUT = timedelta(seconds=60)
PROCESS_RETENTION = timedelta(days=1)
MAX_LISTED_CELLS = 50
# Time since the last heartbeat. Both times come from the database's clock: the clock of this process may be wrong.
_SILENCE = ExpressionWrapper(Now() - F("seen_at"), output_field=DurationField())
_RECORD_HEARTBEAT = load_statement("worker/record_heartbeat")
_SELECT_HEARTBEAT_AGES = """
SELECT name, extract(epoch FROM clock_timestamp() - seen_at)::float8 FROM lab_process WHERE kind = %s ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """A process and its last heartbeat.

    Attributes:
        silent_seconds: time since the heartbeat.
        lag_ms: event-loop lag that the heartbeat reported; 0 if no worker session sent it.
        clock_offset_ms: how far the clock of its host was ahead of the database's; negative if it was behind.
    """

    name: str
    kind: str
    host: str
    is_alive: bool
    silent_seconds: float
    lag_ms: float
    clock_offset_ms: float


@dataclass(frozen=True, slots=True)
class Health:
    """Health of the installation: its processes and known problems.

    Attributes:
        services: registered local servers.
        failures: failures of background jobs in the last day.
        uncomputed_cells: cells whose figures could not be computed; at most MAX_LISTED_CELLS, of the newest runs.
        uncomputed_count: number of all cells whose figures could not be computed.
        has_queued_trials: whether a trial is queued, at any provider.
        fallback_turns: number of turns that requested calls as text JSON, which is deprecated, in runs that are neither
            simulated nor imported.
        fallback_runs: number of runs with such turns.
    """

    processes: tuple[ProcessStatus, ...]
    services: tuple[ServiceAddress, ...]
    failures: tuple[JobFailure, ...]
    uncomputed_cells: tuple[Cell, ...]
    uncomputed_count: int
    has_queued_trials: bool
    fallback_turns: int
    fallback_runs: int

    @property
    def has_worker(self) -> bool:
        """Whether a worker is alive."""
        return any(process.is_alive and process.kind == "worker" for process in self.processes)

    @property
    def is_healthy(self) -> bool:
        """Whether a worker is alive, no background job failed in the last day and all cells could be computed."""
        return self.has_worker and not self.failures and not self.uncomputed_count


def get_health() -> Health:
    """Read the health of the installation with six or seven queries.

    Processes whose last heartbeat is older than PROCESS_RETENTION are left out.
    """
    cells = Cell.objects.filter(run__deleted_at=None, run__simulated=False, run__imported=False)
    fallback = cells.filter(fallback_turns__gt=0).aggregate(
        turns=Sum("fallback_turns", default=0), runs=Count("run", distinct=True)
    )
    uncomputed = Cell.objects.filter(run__deleted_at=None).exclude(compute_error="").select_related("run", "config")
    listed_cells = tuple(uncomputed.order_by("-run_id", "pk")[:MAX_LISTED_CELLS])
    rows = Process.objects.filter(seen_at__gt=Now() - PROCESS_RETENTION).annotate(silence=_SILENCE)
    return Health(
        processes=tuple(
            ProcessStatus(
                name=row.name,
                kind=row.kind,
                host=row.host,
                is_alive=row.silence < HEARTBEAT_TIMEOUT,
                silent_seconds=max(0.0, row.silence.total_seconds()),
                lag_ms=row.loop_lag_ms,
                clock_offset_ms=row.clock_offset_ms,
            )
            for row in rows.order_by("kind", "-seen_at")
        ),
        services=tuple(ServiceAddress.objects.order_by("name")),
        failures=list_recent_failures(),
        uncomputed_cells=listed_cells,
        uncomputed_count=len(listed_cells) if len(listed_cells) < MAX_LISTED_CELLS else uncomputed.count(),
        fallback_turns=fallback["turns"],
        fallback_runs=fallback["runs"],
        has_queued_trials=Trial.objects.filter(state=Trial.State.QUEUED).exists(),
    )


def count_live_workers() -> int:
    """Return how many workers sent a heartbeat within HEARTBEAT_TIMEOUT, with one query."""
    return filter_live_workers().count()


def is_other_live_host(host: str) -> bool:
    """Return whether `host` is another host than this one and has a live worker."""
    return host != socket.gethostname() and filter_live_workers().filter(host=host).exists()


def filter_live_workers() -> QuerySet[Process]:
    """Return the workers that sent a heartbeat within HEARTBEAT_TIMEOUT."""
    return Process.objects.filter(kind="worker", seen_at__gt=Now() - HEARTBEAT_TIMEOUT)


def check_database() -> None:
    """Send a query to the database and wait for the answer.

    Raises:
        django.db.Error: the database does not answer.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def build_process_name(kind: str) -> str:
    """Return the name of this process, `kind@host:pid`."""
    return f"{kind}@{socket.gethostname()}:{os.getpid()}"


def record_heartbeat(kind: str, *, loop_lag_ms: float = 0.0) -> None:
    """Store that this process is alive and reaches the database.

    Args:
        kind: kind of the process, such as `worker`.
        loop_lag_ms: longest event-loop lag of the calling worker session since its last heartbeat; 0 for other callers.
    """
    row: dict[str, str | float] = {
        "name": build_process_name(kind),
        "kind": kind,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "loop_lag_ms": loop_lag_ms,
        "time": time.time(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_HEARTBEAT, row)


def remove_heartbeat(kind: str) -> None:
    """Delete the heartbeat of this process when it stops, so that no page shows the process as dead."""
    Process.objects.filter(name=build_process_name(kind)).delete()


def get_heartbeat_ages(kind: str) -> dict[str, float]:
    """Return the seconds since the last heartbeat of every stored process of a kind, by the name of the process."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_HEARTBEAT_AGES, [kind])
        return dict(cursor.fetchall())
