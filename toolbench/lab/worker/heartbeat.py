"""Heartbeats: a row for each process, which the process writes itself."""

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
    """Return the name of this process: kind@host:pid."""
    return f"{kind}@{socket.gethostname()}:{os.getpid()}"


def record_heartbeat(kind: str, *, loop_lag_ms: float = 0.0) -> None:
    """Store that this process is alive and reaches the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORD_HEARTBEAT, [build_process_name(kind), kind, socket.gethostname(), os.getpid(), loop_lag_ms]
        )


def get_heartbeat_ages(kind: str) -> dict[str, float]:
    """Return the seconds since the last heartbeat of every known process of a kind, by name."""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_HEARTBEAT_AGES, [kind])
        return dict(cursor.fetchall())
