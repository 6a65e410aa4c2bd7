"""Reads who shows signs of life. A worker can be alive and deaf, so that it runs says nothing.

The table belongs to the lab; only these three columns are read here.
"""

import socket

import psycopg

_SILENT_SECONDS_SQL = """
SELECT pid, min(extract(epoch FROM clock_timestamp() - seen_at))::float FROM lab_process WHERE host = %s GROUP BY pid
"""


def read_silent_seconds(database_url: str) -> dict[int, float] | None:
    """Seconds since the last sign of life, by process number, on this host. None when the database cannot be asked."""
    try:
        with psycopg.connect(database_url, connect_timeout=2, options="-c statement_timeout=2000") as connection:
            return dict(connection.execute(_SILENT_SECONDS_SQL, [socket.gethostname()]).fetchall())
    except psycopg.Error:
        return None
