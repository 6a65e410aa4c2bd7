"""A running `make up` without the local model, with its own disk and its processes by name."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg

from benchmarks.chaos.schedule import BACKEND, DATABASE, SUPERVISOR
from benchmarks.chaos.small_disk import Disk
from toolbench.installation import ROOT
from toolbench.running.database_user import build_confined_command
from toolbench.running.paths import Lock, read_state

TIMEOUT_SECONDS = 120
# Intervals are short, so that lost work is found within a round. Processes take seconds to start, so silence is long.
_SETTINGS = {
    "LOCAL_MODEL": "0",
    "WORKERS": "2",
    "TOOLBENCH_LEASE_SECONDS": "3",
    "TOOLBENCH_HEARTBEAT_SECONDS": "0.5",
    "TOOLBENCH_SWEEP_SECONDS": "0.5",
    "TOOLBENCH_SHIFT_SECONDS": "5",
    "TOOLBENCH_SILENT_SECONDS": "40",
}
_COMMAND_MARKS = {
    "postgres": "/bin/postgres\0",
    "valkey": "valkey-server",  # it sets its own process title
    "web": "gunicorn\0",
    "worker-1": "worker-1@",
    "worker-2": "worker-2@",
    "scheduler": "\0scheduler\0",
    "simulated": "toolbench.providers.simulated\0",
}


class StackTimeoutError(Exception):
    """A condition was not met in time; the message names it."""


class Stack:
    """A `make up` in a folder of its own.

    Start it in the main thread, since it ends with the thread that started it.

    Attributes:
        disk: the tmpfs that holds its data; None if the machine allows none.
    """

    def __init__(self, folder: Path, *, can_fill: bool) -> None:
        self.var = folder / "var"
        self.var.mkdir()
        self.disk = Disk(self.var) if can_fill else None
        self.port = _find_free_port()
        self._out = folder / "out"
        self.environment = {**os.environ, **_SETTINGS, "TOOLBENCH_VAR": str(self.var), "PORT": str(self.port)}
        for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "HOST"):
            self.environment.pop(name, None)

    def start(self) -> None:
        """Start every process and wait until all of them serve.

        Raises:
            StackTimeoutError: they do not after 120 s.
        """
        command = build_confined_command([sys.executable, "-m", "toolbench.running", "up"], death_signal=signal.SIGTERM)
        with self._out.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        wait_until(lambda: "simulated is ready" in self.output or self.process.poll() is not None, "make up")
        if self.process.poll() is not None:
            raise StackTimeoutError(f"make up ended: {self.output}")
        state = read_state(self.var / "running.json")
        assert state is not None
        self.environment |= state.environment
        wait_until(lambda: self.count_live_workers() == 2, "two workers with a heartbeat")

    def stop(self) -> None:
        """Stop every process and delete the data."""
        self.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.wait()
        lock = Lock(self.var / "children.lock")
        lock.acquire(seconds=30)
        lock.release()
        if self.disk:
            self.disk.clear()
        else:
            shutil.rmtree(self.var, ignore_errors=True)

    @property
    def output(self) -> str:
        """Output of `make up` so far."""
        return self._out.read_text(errors="replace")

    def connect(self) -> psycopg.Connection:
        """Open a connection to the database, on which a statement may take 5 s."""
        url = self.environment["DATABASE_URL"]
        return psycopg.connect(url, autocommit=True, connect_timeout=2, options="-c statement_timeout=5000")

    def count_live_workers(self) -> int:
        """Return how many workers had a heartbeat in the last 3 s; 0 while the database is unavailable."""
        query = "SELECT count(*) FROM lab_process WHERE kind = 'worker' AND seen_at > now() - interval '3 s'"
        try:
            with self.connect() as connection:
                row = connection.execute(query).fetchone()
        except psycopg.Error:
            return 0
        return int(row[0]) if row else 0

    def is_page_served(self) -> bool:
        """Return whether the sign-in page is served."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/sign-in/")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def find_children(self) -> dict[str, int]:
        """Return the process id of every living child of the supervisor, by name."""
        lines = {pid: _read_command(pid) for pid in _list_children(self.process.pid)}
        return {
            name: pid
            for name, mark in _COMMAND_MARKS.items()
            for pid, line in lines.items()
            if mark in line and "confine.py" not in line
        }

    def find_pids(self, target: str, random: Random) -> list[int]:
        """Return the process ids that a fault of `target` hits; none while the target does not run."""
        if target == SUPERVISOR:
            return [self.process.pid]
        children = self.find_children()
        if target not in (BACKEND, DATABASE):
            return [children[target]] if target in children else []
        if "postgres" not in children:
            return []
        backends = _list_children(children["postgres"])
        if target == DATABASE:
            return [children["postgres"], *backends]
        clients = sorted(pid for pid in backends if "postgres: postgres toolbench" in _read_command(pid))
        return [random.choice(clients)] if clients else []

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs to a folder."""
        shutil.copytree(self.var / "log", folder, dirs_exist_ok=True)
        (folder / "make-up.txt").write_text(self.output)


def wait_until(is_met: Callable[[], bool], what: str, *, seconds: float = TIMEOUT_SECONDS) -> None:
    """Wait until a condition is met.

    Args:
        is_met: whether the condition is met.
        what: name of the condition for the message.
        seconds: time limit.

    Raises:
        StackTimeoutError: the condition is not met in time.
    """
    until = time.monotonic() + seconds
    while not is_met():
        if time.monotonic() > until:
            raise StackTimeoutError(f"{what}: not after {seconds:.0f} s")
        time.sleep(0.05)


def _find_free_port() -> int:
    """Return a free port below the range from which the system takes ports of outgoing connections."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise StackTimeoutError("no port is free")


def _list_children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _read_command(pid: int) -> str:
    """Return the command line, with NUL after each part; "" if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
