"""Statements that a shift sends all the time: their parameters travel apart from them, bytes as bytes, so that the
database may plan them once; and several go out together, so that the worker waits once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection

PREPARE_THRESHOLD = 3  # executions in one session


@contextmanager
def open_pipeline() -> Iterator[None]:
    """Statements executed meanwhile are sent in order without waiting for each other. Raises Django's errors."""
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def open_cursor() -> psycopg.Cursor[Any]:
    """A cursor of Django's own connection; one for each result that is fetched."""
    connection.ensure_connection()
    return psycopg.Cursor(connection.connection)


def enable_prepared_statements() -> None:
    """For a connection that stays with one thread; others may go through a pooler, which knows no plans."""
    connection.ensure_connection()
    connection.connection.prepare_threshold = PREPARE_THRESHOLD
