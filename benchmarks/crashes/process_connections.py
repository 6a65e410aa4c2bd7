"""Connections of simulated processes to the database.

A new backend reads the system catalogue, which costs more than the statements of a short session. A connection that a
process has closed outside a transaction is therefore used again for the next process that connects.
"""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

AnyConnection = psycopg.Connection[Any]


class IdleConnections:
    """Open connections that no process uses. Thread-safe."""

    def __init__(self) -> None:
        self._connections: list[AnyConnection] = []

    def take(self) -> AnyConnection | None:
        """Return the connection that was added last, or None."""
        with suppress(IndexError):
            return self._connections.pop()
        return None

    def put(self, connection: AnyConnection) -> None:
        """Add a connection."""
        self._connections.append(connection)

    def close(self) -> None:
        """Close all connections."""
        while connection := self.take():
            _close(connection)


class ProcessConnections:
    """Connections of one process. Thread-safe.

    psycopg takes it for a pool: `Connection.close` calls `putconn`.

    Attributes:
        backends: process ids of the backends of all connections that the process had.
    """

    close_returns = True

    def __init__(self, idle: IdleConnections) -> None:
        self._idle = idle
        self._lock = threading.Lock()
        self._open: set[AnyConnection] = set()
        self._cut: set[AnyConnection] = set()
        self.backends: set[int] = set()

    def connect(self, connect: Callable[[], AnyConnection], prepare_threshold: int | None) -> AnyConnection:
        """Return an idle connection or a new one."""
        connection = self._idle.take() or connect()
        connection.prepare_threshold = prepare_threshold
        _set_pool(connection, self)
        with self._lock:
            self._open.add(connection)
            self.backends.add(connection.info.backend_pid)
        return connection

    def putconn(self, connection: AnyConnection) -> None:
        """Keep a connection that its process closes for another process, unless it is cut or in a transaction."""
        with self._lock:
            self._open.discard(connection)
            is_cut = connection in self._cut
        if is_cut or connection.pgconn.transaction_status != TransactionStatus.IDLE:
            _close(connection)
        else:
            self._idle.put(connection)

    def cut(self, connection: AnyConnection) -> None:
        """Shut down a connection without a message to the database, as a lost network does."""
        with self._lock:
            self._cut_unlocked(connection)

    def cut_all(self, *, in_transaction: bool = False) -> None:
        """End all connections of the process, or those that are in a transaction."""
        with self._lock:
            for connection in self._open:
                if not in_transaction or connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    self._cut_unlocked(connection)

    def close(self) -> None:
        """Close the connections that the process has left open. Call it when its threads have ended."""
        for connection in tuple(self._open):
            _close(connection)

    def _cut_unlocked(self, connection: AnyConnection) -> None:
        self._cut.add(connection)
        if connection.closed:
            return
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as end:
            end.shutdown(socket.SHUT_RDWR)


def _set_pool(connection: AnyConnection, pool: ProcessConnections | None) -> None:
    connection._pool = pool  # psycopg uses only close_returns and putconn of it


def _close(connection: AnyConnection) -> None:
    _set_pool(connection, None)
    connection.close()
