"""Locks of the database that tests wait for."""

from django.db import connection


def is_other_connection_blocked() -> bool:
    """Return whether a connection waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
