"""Thread with its own database connection for a worker session, and pipelines of statements."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection, connections

# Classes of the exceptions that Django raises while the database is unavailable, and after it has ended an idle
# transaction. Some permanent refusals have the same classes: `is_unavailable` distinguishes them.
UNAVAILABLE_ERRORS = (OperationalError, InterfaceError, InternalError)

# Prefixes of the SQLSTATEs of temporary errors. All others are permanent refusals: a statement that is too large or
# takes too long, a damaged table, a limit of a role.
_TEMPORARY_SQLSTATES = (
    "08",  # connection lost
    "25006",  # read-only, as a standby is that takes over
    "25P03",  # the database ended an idle transaction
    "40",  # deadlock, serialization
    "530",  # insufficient resources
    "531",  # disk full
    "532",  # out of memory
    "533",  # too many connections
    "55P03",  # a lock was not free in time
    "57P",  # shutdown, crash, start and recovery
    "58",  # input and output of the operating system
)

P = ParamSpec("P")
T = TypeVar("T")
PREPARE_THRESHOLD = 3  # number of executions of a statement on one connection after which it is prepared
DATABASE_RETRY_SECONDS = 0.5  # pause between two attempts while the database is unavailable


class StatementRefusedError(DatabaseError):
    """Raised if the database refused a statement and would refuse it again."""


def is_unavailable(error: BaseException) -> bool:
    """Return whether the error is temporary: the same statement can succeed once the database is available again.

    An error without SQLSTATE does not come from the server; it counts as a lost connection.
    """
    if not isinstance(error, UNAVAILABLE_ERRORS):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(_TEMPORARY_SQLSTATES)


class DatabaseThread:
    """Executor that runs functions one after another on one connection, in the order of the calls.

    The connection stays open until `close` is called.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")

    async def run(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a function in the thread and return its result.

        After one of the UNAVAILABLE_ERRORS, the next function gets a new connection.

        Raises:
            StatementRefusedError: the function raised one of the UNAVAILABLE_ERRORS, but the error is not temporary.
            Exception: any other exception of the function.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(_run_on_connection, partial(function, *args, **named)))

    async def close(self) -> None:
        """Close the thread and its connection, if it has one, even while the database is unavailable.

        The connection is closed even if the calling task is cancelled while it waits.
        """
        closing = asyncio.get_running_loop().run_in_executor(self._pool, connections.close_all)
        self._pool.shutdown(wait=False)
        await asyncio.shield(closing)


def _run_on_connection(function: Callable[[], T]) -> T:
    """Run a function in this thread, and close the connection after one of the UNAVAILABLE_ERRORS."""
    try:
        if connection.connection is None:
            _connect()
        return function()
    except UNAVAILABLE_ERRORS as error:
        connection.close()
        if is_unavailable(error):
            raise
        raise StatementRefusedError(str(error)) from error


def _connect() -> None:
    """Connect with a timeout for idle transactions, and with one plan for each prepared statement.

    A worker that freezes in the middle of a transaction holds locks. The timeout makes the database end the transaction
    after LEASE_SECONDS.
    """
    with connection.cursor() as cursor:
        milliseconds = int(settings.LEASE_SECONDS * 1000)
        cursor.execute("SET idle_in_transaction_session_timeout = %s", [milliseconds])
        cursor.execute("SET plan_cache_mode = force_generic_plan")
    enable_prepared_statements()


@contextmanager
def open_pipeline() -> Iterator[None]:
    """Send the statements of the block in order, without waiting for the result of one before the next is sent.

    Raises:
        django.db.Error: a statement failed; the exception of psycopg is its cause.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def open_cursor() -> psycopg.Cursor[Any]:
    """Return a new psycopg cursor of Django's connection. Use one cursor for each result that is fetched."""
    connection.ensure_connection()
    return psycopg.Cursor(connection.connection)


def enable_prepared_statements() -> None:
    """Enable prepared statements for a connection that stays with one thread.

    Other connections may go through a pooler, which does not support them.
    """
    connection.ensure_connection()
    connection.connection.prepare_threshold = PREPARE_THRESHOLD
