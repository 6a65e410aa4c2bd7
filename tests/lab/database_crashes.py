"""Crashes of the database at chosen moments of a worker session in this process."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, connections

from tests.lab.durable_postgres import DurablePostgres
from toolbench.lab.worker.database_thread import DatabaseThread

P = ParamSpec("P")
T = TypeVar("T")


class CrashMoment(Enum):
    """When the server crashes: before a function's commit, after it and before its answer arrives, or after both."""

    UNCOMMITTED = 1
    UNANSWERED = 2
    ANSWERED = 3


_SINGLE_STATEMENT_FUNCTIONS = ("reserve",)  # each is one statement, which commits by itself


class PlannedCrashes:
    """Crash a server at the planned moments and start it again.

    Attributes:
        restarted: called after each restart, before any function reaches the new server.
        left: the moments still to come, by the name of the function.
    """

    def __init__(
        self,
        server: DurablePostgres,
        planned: Iterable[tuple[str, CrashMoment]],
        restarted: Callable[[], object] = lambda: None,
    ) -> None:
        self._server = server
        self._restarted = restarted
        self._crashing = threading.RLock()
        self.left: dict[str, deque[CrashMoment]] = defaultdict(deque)
        for function, moment in planned:
            self.left[function].append(moment)

    def thread(self) -> DatabaseThread:
        """Return a database thread whose functions may crash the server."""
        return _CrashingThread(self)

    def wrap(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function, which crashes the server when its moment has come."""

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> T:
            moments = self.left[function.__name__]
            if not moments:
                return function(*args, **named)
            if moments[0] is CrashMoment.UNCOMMITTED:
                return self._call_uncommitted(function, *args, **named)
            answer = function(*args, **named)
            if getattr(answer, "trials", True):  # a claim of nothing is not worth a crash
                moment = moments.popleft()
                self._crash()
                if moment is CrashMoment.UNANSWERED:
                    raise OperationalError("the server crashed before it answered")
            return answer

        return call

    def _call_uncommitted(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Call the function, whose first commit meets a crashed server; a single statement meets it at once."""
        connection.ensure_connection()
        session = connection.connection
        commit = session.commit

        def crash() -> None:
            self.left[function.__name__].popleft()
            session.commit = commit
            self._crash()

        def crash_and_commit() -> None:
            crash()
            commit()

        if function.__name__ in _SINGLE_STATEMENT_FUNCTIONS:
            crash()
        else:
            session.commit = crash_and_commit
        return function(*args, **named)

    def _crash(self) -> None:
        with self._crashing:
            self._server.crash()
            self._server.start()
            with ThreadPoolExecutor(1) as pool:  # with a connection of its own
                pool.submit(self._restart).result()

    def _restart(self) -> None:
        try:
            self._restarted()
        finally:
            connections.close_all()


class _CrashingThread(DatabaseThread):
    def __init__(self, crashes: PlannedCrashes) -> None:
        super().__init__()
        self._crashes = crashes

    async def run(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        return await super().run(self._crashes.wrap(function), *args, **named)
