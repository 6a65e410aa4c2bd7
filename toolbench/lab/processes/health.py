"""Liveness: what runs, as its heartbeat says. Exit codes are not asked: a worker can be alive and deaf."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import Count, Sum
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.models import Cell, Process, ServiceAddress, Trial

BEAT = timedelta(seconds=60)
FORGET = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProcessLine:
    name: str
    kind: str
    host: str
    alive: bool
    seconds: float  # since its last beat
    lag_ms: float


@dataclass(frozen=True, slots=True)
class Health:
    processes: tuple[ProcessLine, ...]
    services: tuple[ServiceAddress, ...]
    waiting: bool  # some trial waits
    fallback_turns: int  # asked by text JSON, which is deprecated; without simulated models
    fallback_runs: int

    @property
    def working(self) -> bool:
        return any(line.alive and line.kind == "worker" for line in self.processes)


def get_health() -> Health:
    """Four queries. Processes silent for a day are left out."""
    now = timezone.now()
    cells = Cell.objects.filter(run__deleted_at=None, run__simulated=False, run__imported=False)
    fallback = cells.filter(fallback_turns__gt=0).aggregate(
        turns=Sum("fallback_turns", default=0), runs=Count("run", distinct=True)
    )
    rows = Process.objects.filter(seen_at__gt=Now() - FORGET).order_by("kind", "-seen_at")
    return Health(
        processes=tuple(
            ProcessLine(
                name=row.name,
                kind=row.kind,
                host=row.host,
                alive=now - row.seen_at < BEAT,
                seconds=max(0.0, (now - row.seen_at).total_seconds()),
                lag_ms=row.loop_lag_ms,
            )
            for row in rows
        ),
        services=tuple(ServiceAddress.objects.order_by("name")),
        fallback_turns=fallback["turns"],
        fallback_runs=fallback["runs"],
        waiting=Trial.objects.filter(state=Trial.State.QUEUED).exists(),
    )


def does_a_worker_beat() -> bool:
    """Whether any showed a sign of life of late; if none did, trials only wait. One query."""
    return Process.objects.filter(kind="worker", seen_at__gt=Now() - BEAT).exists()


def ask_database() -> None:
    """Returns when the database answers. Raises what Django raises when it does not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
