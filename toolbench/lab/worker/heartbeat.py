"""Signs of life: a row per process, written by the process itself."""

import os
import socket

from django.db import connection

_RECORD_HEARTBEAT = """
INSERT INTO lab_process (name, kind, host, pid, loop_lag_ms, seen_at) VALUES (%s, %s, %s, %s, %s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET seen_at = clock_timestamp(), loop_lag_ms = excluded.loop_lag_ms
"""

_SELECT_HEARTBEAT_AGES = """
SELECT name, extract(epoch FROM clock_timestamp() - seen_at)::float8 FROM lab_process WHERE kind = %s ORDER BY name
"""


def build_process_name(kind: str) -> str:
    """kind@host:pid of this process."""
    return f"{kind}@{socket.gethostname()}:{os.getpid()}"


def record_heartbeat(kind: str, *, loop_lag_ms: float = 0.0) -> None:
    """This process is alive and can reach the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORD_HEARTBEAT, [build_process_name(kind), kind, socket.gethostname(), os.getpid(), loop_lag_ms]
        )


def get_heartbeat_ages(kind: str) -> dict[str, float]:
    """Seconds since the last sign of life of every known process of this kind."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_HEARTBEAT_AGES, [kind])
        return dict(cursor.fetchall())
