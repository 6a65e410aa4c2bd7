"""Simulated processes that are killed, cut off or frozen at a chosen statement, commit or request.

They run in threads of this process, while `install_hooks` is active. Other code in this process runs as usual.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import httpx
import psycopg

from benchmarks.crashes.process_connections import AnyConnection, IdleConnections, ProcessConnections
from benchmarks.crashes.virtual_loop import VirtualTimeLoop, run_in_virtual_time
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import Exchange

ANSWER_SECONDS = 0.3  # virtual time until a process reads an answer that has arrived
_CANCEL_SECONDS = 0.01  # virtual time between two cancellations of the tasks of a process that was killed

T = TypeVar("T")


class Fault(StrEnum):
    """What happens at a crash point.

    KILL ends the process. CUT ends the connection that is in use, and the process continues. FREEZE stops the process
    until other processes have finished its work.
    """

    KILL = "kill"
    CUT = "cut"
    FREEZE = "freeze"


class Moment(StrEnum):
    """Side of an event on which the fault happens."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A fault before or after the n-th event of a process, counted from 1."""

    number: int
    moment: Moment
    fault: Fault

    def __str__(self) -> str:
        return f"{self.fault} {self.moment} event {self.number}"


class ProcessKilledError(BaseException):
    """The simulated process has ended. Not an Exception, so that the product's code does not handle it."""


class SimulatedProcess:
    """Code that runs in this process as if it were a process of its own.

    Args:
        point: where it crashes; None for nowhere.
        on_time: called with the virtual seconds that have passed in one of its event loops.
        answer_seconds: virtual time until it reads an answer that has arrived. In this time leases are renewed, runs
            are checked and heartbeats are stored.

    Attributes:
        events: descriptions of its statements, commits and requests, in order.
        was_hit: whether the fault happened.
        is_dead: whether it was killed.
        stopped: set when the process has ended or is frozen.
        connections: its connections to the database.
    """

    def __init__(
        self,
        point: CrashPoint | None = None,
        *,
        on_time: Callable[[float], object] = lambda now: None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._point = point
        self.answer_seconds = answer_seconds
        self._on_time = on_time
        self._lock = threading.Lock()
        self._loops: list[VirtualTimeLoop] = []
        self.connections = ProcessConnections(_idle_connections)
        self.is_dead = False
        self._thawed = threading.Event()
        self._thawed.set()
        self.stopped = threading.Event()
        self.events: list[str] = []
        self.was_hit = False

    @property
    def is_frozen(self) -> bool:
        """Whether all threads of the process are stopped."""
        return not self._thawed.is_set()

    def run(self, body: Callable[[], T]) -> T | None:
        """Run a function as this process; return its result, or None if the process was killed."""
        try:
            return self.wrap(body)()
        except BaseException:
            if not self.is_dead:
                raise
            return None
        finally:
            self.stopped.set()

    def wrap(self, function: Callable[[], T]) -> Callable[[], T]:
        """Return a function that runs the given one as this process, in any thread."""

        def call() -> T:
            with _run_as(self):
                return function()

        return call

    def new_loop(self) -> VirtualTimeLoop:
        """Return an event loop of this process."""
        loop = VirtualTimeLoop(self.wrap, self._on_time)
        self._loops.append(loop)
        _process_by_loop[loop] = self
        return loop

    def thaw(self) -> None:
        """Continue a frozen process."""
        self.stopped.clear()
        self._thawed.set()

    def count_event(self, description: str) -> Callable[[Moment], Fault | None]:
        """Count an event; return a function that finds the fault before or after it.

        It waits while the process is frozen.

        Raises:
            ProcessKilledError: the process has ended.
        """
        self.check_alive()
        with self._lock:
            self.events.append(description)
            number = len(self.events)

        def find_fault(moment: Moment) -> Fault | None:
            self.check_alive()
            point = self._point
            if point is None or (point.number, point.moment) != (number, moment):
                return None
            self.was_hit = True
            return point.fault

        return find_fault

    def kill(self) -> None:
        """End the process: it sends no further statement, commit or request."""
        self.is_dead = True
        self.connections.cut_all()
        for loop in self._loops:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_cancel_tasks, loop)

    def freeze(self) -> None:
        """Stop all threads of the process until `thaw` is called.

        Its open transactions are ended, as the database does after LEASE_SECONDS.
        """
        self._thawed.clear()
        for loop in self._loops:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._thawed.wait)
        self.connections.cut_all(in_transaction=True)
        self.stopped.set()
        self._thawed.wait()

    def check_alive(self) -> None:
        """Wait while the process is frozen.

        Raises:
            ProcessKilledError: the process has ended.
        """
        self._thawed.wait()
        if self.is_dead:
            raise ProcessKilledError


_current = threading.local()
_idle_connections = IdleConnections()
_process_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, SimulatedProcess] = WeakKeyDictionary()


@contextmanager
def run_outside_processes() -> Iterator[None]:
    """Run the block as part of no simulated process, so that its statements are not counted."""
    with _run_as(None):
        yield


@contextmanager
def _run_as(process: SimulatedProcess | None) -> Iterator[None]:
    before = getattr(_current, "process", None)
    _current.process = process
    try:
        yield
    finally:
        _current.process = before


@contextmanager
def install_hooks() -> Iterator[None]:
    """Count the statements, commits and requests of simulated processes during the block."""
    execute, commit, connect = psycopg.Cursor.execute, psycopg.Connection.commit, psycopg.connect
    send, run = HttpClient.send, asyncio.run

    @wraps(execute)
    def counted_execute(cursor: Any, query: Any, *args: Any, **named: Any) -> Any:
        text = query.decode() if isinstance(query, bytes) else str(query)
        return _count_database_event(cursor.connection, text, lambda: execute(cursor, query, *args, **named))

    @wraps(commit)
    def counted_commit(connection: Any) -> None:
        _count_database_event(connection, "COMMIT", lambda: commit(connection))

    def connect_process(*args: Any, **named: Any) -> AnyConnection:
        process: SimulatedProcess | None = getattr(_current, "process", None)
        if process is None:
            return connect(*args, **named)
        process.check_alive()
        return process.connections.connect(lambda: connect(*args, **named), named.get("prepare_threshold"))

    @wraps(send)
    async def counted_send(client: HttpClient, exchange: Exchange) -> None:
        process = _process_by_loop.get(asyncio.get_running_loop())
        await (send(client, exchange) if process is None else _send(process, client, exchange, send))

    def virtual_run(main: Coroutine[Any, Any, T]) -> T:
        process: SimulatedProcess | None = getattr(_current, "process", None)
        return run(main) if process is None else run_in_virtual_time(process.new_loop(), main)

    with (
        replace_attribute(psycopg.Cursor, "execute", counted_execute),
        replace_attribute(psycopg.Connection, "commit", counted_commit),
        replace_attribute(psycopg, "connect", connect_process),
        replace_attribute(HttpClient, "send", counted_send),
        replace_attribute(asyncio, "run", virtual_run),
        closing(_idle_connections),
    ):
        yield


@contextmanager
def replace_attribute(owner: Any, name: str, value: object) -> Iterator[None]:
    """Replace the value of an attribute during the block."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _count_database_event(connection: AnyConnection, text: str, execute: Callable[[], T]) -> T:
    process: SimulatedProcess | None = getattr(_current, "process", None)
    if process is None:
        return execute()
    find_fault = process.count_event(" ".join(text.split())[:80])
    _inject_database_fault(process, connection, find_fault(Moment.BEFORE))
    result = execute()
    fault = find_fault(Moment.AFTER)
    _inject_database_fault(process, connection, fault)
    if fault is Fault.CUT:
        raise psycopg.OperationalError("The connection was cut before the answer arrived.")
    return result


def _inject_database_fault(process: SimulatedProcess, connection: AnyConnection, fault: Fault | None) -> None:
    if fault is Fault.KILL:
        process.kill()
        raise ProcessKilledError
    if fault is Fault.CUT:
        process.connections.cut(connection)
    if fault is Fault.FREEZE:
        process.freeze()


async def _send(process: SimulatedProcess, client: HttpClient, exchange: Exchange, send: Any) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    find_fault = process.count_event("request")
    if await _inject_request_fault(process, exchange, find_fault(Moment.BEFORE)):
        return
    loop.begin_work()
    try:
        await send(client, exchange)
    finally:
        loop.end_work()
    await asyncio.sleep(process.answer_seconds)
    await _inject_request_fault(process, exchange, find_fault(Moment.AFTER))


async def _inject_request_fault(process: SimulatedProcess, exchange: Exchange, fault: Fault | None) -> bool:
    """Let a fault happen; return whether the connection to the provider was cut."""
    if fault is Fault.KILL:
        process.kill()
        await asyncio.Event().wait()  # until the task is cancelled
    if fault is Fault.FREEZE:
        process.freeze()
    if fault is Fault.CUT:
        exchange.exception = httpx.ReadError("The connection was cut.")
        exchange.finish()
    return fault is Fault.CUT


def _cancel_tasks(loop: VirtualTimeLoop) -> None:
    """Cancel all tasks until the loop ends, since `wait_for` of Python 3.11 may lose a cancellation."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(_CANCEL_SECONDS, _cancel_tasks, loop)
