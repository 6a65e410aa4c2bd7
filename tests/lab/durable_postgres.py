"""A PostgreSQL that keeps its promises (`fsync` and synchronous commits) until a test crashes it."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.wait import wait_until
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.servers import Postgres


class _CrashablePostgres(Postgres):
    """A server that ends although one of its processes is stopped, when the test run is killed."""

    stop_signal = signal.SIGQUIT


class DurablePostgres:
    """A server with a data folder and a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        sockets = folder / "s"
        sockets.mkdir(mode=0o700, parents=True)
        self._postgres = _CrashablePostgres(folder / "postgres", sockets)
        self._child: ChildProcess | None = None
        self._parent = ThreadPoolExecutor(1)  # a server ends with the thread that started it
        self.sockets = sockets
        self._writes_late = False

    def prepare(self) -> None:
        """Make the data folder, start the server and create the database."""
        self._postgres.prepare(self._folder / "prepare.log")
        self.start()
        self._postgres.create_database()

    def build_url(self) -> str:
        return self._postgres.build_url()

    def start(self) -> None:
        """Start the server unless it runs; return when it answers.

        A server that exits because processes of its crashed predecessor still hold its memory is started again.
        """
        spec = ChildSpec("postgres", self._postgres.build_command(), self._postgres.environment, self._folder)

        def is_ready() -> bool:
            if self._child is None or self._child.poll_exit_code() is not None:
                self._child = self._parent.submit(ChildProcess, spec, self._folder).result()
            return self._postgres.is_ready()

        wait_until(is_ready)
        if self._writes_late:
            self.stop_wal_writer()

    def flush(self) -> None:
        """Write to disk what has been committed, whether or not the commits waited for it."""
        with psycopg.connect(self._postgres.build_url("postgres"), autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def crash(self) -> None:
        """Kill every process of the server at once, so that only what is on disk survives."""
        if self._child is None or self._child.poll_exit_code() is not None:
            return
        os.kill(self._child.pid, signal.SIGSTOP)  # so that it does not react to the end of its children
        for child in Path(f"/proc/{self._child.pid}/task/{self._child.pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self._child.kill()

    def remove(self) -> None:
        """Crash the server and delete its data."""
        self.crash()
        self._parent.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop_wal_writer(self) -> None:
        """Keep each asynchronous commit in memory from now on, so that a crash loses it.

        With its WAL writer a server loses only those of the last 0.6 seconds.
        """
        self._writes_late = True
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        with psycopg.connect(self._postgres.build_url("postgres")) as connection:
            for (pid,) in connection.execute(query).fetchall():
                os.kill(pid, signal.SIGSTOP)
