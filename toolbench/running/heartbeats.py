"""Heartbeats of the child processes, read from the database.

A process can run without working, so its heartbeats are checked too. The table belongs to the lab; only three of its
columns are read here.
"""

import socket

import psycopg

_SILENT_SECONDS_SQL = """
SELECT pid, min(extract(epoch FROM clock_timestamp() - seen_at))::float FROM lab_process WHERE host = %s GROUP BY pid
"""


def read_silent_seconds(database_url: str) -> dict[int, float] | None:
    """Return the seconds since the last heartbeat by process number, for this host.

    Returns:
        None when the database cannot be queried.
    """
    try:
        with psycopg.connect(database_url, connect_timeout=2, options="-c statement_timeout=2000") as connection:
            return dict(connection.execute(_SILENT_SECONDS_SQL, [socket.gethostname()]).fetchall())
    except psycopg.Error:
        return None
