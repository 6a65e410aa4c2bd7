"""The one thread in which a shift talks to the database, on a connection of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, connections

AWAY = (OperationalError, InterfaceError)  # the database is gone, restarting, or refused us for a moment

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
        await self.run(connections.close_all)  # those of the thread that runs it
        self._pool.shutdown(wait=False)


def _guarded(verb: Callable[[], T]) -> T:
    try:
        return verb()
    except AWAY:
        connection.close()
        raise
