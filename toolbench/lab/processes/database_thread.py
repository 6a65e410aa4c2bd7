"""The one thread in which a shift talks to the database, on a connection of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection, connections

from toolbench.lab.processes.statements import prepare_often_used

# The database is gone, restarting, refused us for a moment, or has ended a transaction that we left lying.
AWAY = (OperationalError, InterfaceError, InternalError)

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseThread:
    """Runs verbs one after another, in the order they were asked for. Close it when done: its connection stays open
    until then."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")

    async def run(self, verb: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Raises what the verb raises; after one of AWAY the next verb gets a new connection."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(_guarded, partial(verb, *args, **named)))

    async def close(self) -> None:
        """Close the thread's connection, if it has one, also while the database is away."""
        await asyncio.get_running_loop().run_in_executor(self._pool, connections.close_all)
        self._pool.shutdown(wait=False)


def _guarded(verb: Callable[[], T]) -> T:
    try:
        if connection.connection is None:
            _connect()
        return verb()
    except AWAY:
        connection.close()
        raise


def _connect() -> None:
    """A worker that freezes in the middle of a transaction holds locks; after a lease the database ends it."""
    with connection.cursor() as cursor:
        milliseconds = int(settings.LEASE_SECONDS * 1000)
        cursor.execute("SET idle_in_transaction_session_timeout = %s", [milliseconds])
    prepare_often_used()
