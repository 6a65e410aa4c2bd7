"""Query for the heartbeats of child processes, which show whether a running process still works.

The table `lab_process` belongs to the package `lab`.
"""

import socket

import psycopg

_SILENT_SECONDS_SQL = """
SELECT pid, min(extract(epoch FROM clock_timestamp() - seen_at))::float FROM lab_process WHERE host = %s GROUP BY pid
"""


def read_silent_seconds(database_url: str) -> dict[int, float] | None:
    """Return the seconds since the last heartbeat of each process of this host, by process number.

    Returns:
        None if the database cannot be queried.
    """
    try:
        with psycopg.connect(database_url, connect_timeout=2) as connection:
            # 2 s. A connection pooler may refuse this setting as an option of the connection.
            connection.execute("SET LOCAL statement_timeout = 2000")
            return dict(connection.execute(_SILENT_SECONDS_SQL, [socket.gethostname()]).fetchall())
    except psycopg.Error:
        return None
