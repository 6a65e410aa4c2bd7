"""The database server of a stopped installation, for commands that need only the database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.errors import RunnerError
from toolbench.running.paths import Lock, Paths, make_socket_folder, read_state, remove_sockets
from toolbench.running.servers import Postgres

MAX_WAIT_SECONDS = 120.0


@contextmanager
def serve_database(paths: Paths) -> Iterator[str]:
    """Start the installation's own PostgreSQL, yield its URL, and stop it afterwards.

    The locks of a running Toolbench are held meanwhile, so `make up` is refused until the block ends.

    Raises:
        RunnerError: Toolbench runs, or its processes are still ending; the data folder cannot be written; the disk is
            nearly full; or the server cannot be prepared or does not start within MAX_WAIT_SECONDS.
    """
    paths.create()
    locks = (Lock(paths.var / "up.lock"), Lock(paths.var / "children.lock"))
    try:
        if not all(lock.acquire() for lock in locks):
            raise RunnerError("Toolbench runs, or its processes are still ending: try again when they have ended.")
        sockets = make_socket_folder(read_state(paths.state))
        try:
            yield from _serve(paths, Postgres(paths.var / "postgres", sockets), locks[1])
        finally:
            remove_sockets(sockets)
    finally:
        for lock in locks:
            lock.release()


def _serve(paths: Paths, server: Postgres, children_lock: Lock) -> Iterator[str]:
    server.prepare(paths.logs / "postgres.log")
    command = server.build_command()
    spec = ChildSpec("postgres", command, server.environment, paths.var, server.stop_signal, stop_seconds=30.0)
    child = ChildProcess(spec, paths.logs, (children_lock.handle,))
    try:
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while not server.is_ready():
            if child.poll_exit_code() is not None or time.monotonic() > deadline:
                raise RunnerError(f"PostgreSQL does not start: see {child.log}.")
            time.sleep(0.05)
        server.create_database()
        yield server.build_url()
    finally:
        child.stop()
