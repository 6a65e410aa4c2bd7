"""Statements that a worker session sends often: prepared, with binary parameters, several in one round trip."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection

PREPARE_THRESHOLD = 3  # executions in one session


@contextmanager
def open_pipeline() -> Iterator[None]:
    """Send the statements of the block in order, without waiting for each other.

    Raises:
        django.db.Error: what the statements raise, as Django's exceptions.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def open_cursor() -> psycopg.Cursor[Any]:
    """Return a cursor of Django's own connection. Use one for each result that is fetched."""
    connection.ensure_connection()
    return psycopg.Cursor(connection.connection)


def enable_prepared_statements() -> None:
    """Enable prepared statements for a connection that stays with one thread.

    Other connections may go through a pooler, which does not support them.
    """
    connection.ensure_connection()
    connection.connection.prepare_threshold = PREPARE_THRESHOLD
