"""The back of `make up`: PostgreSQL with all its safety, a broker and one Celery worker, in a folder that is thrown
away."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from benchmarks.layers import LayerFigures
from toolbench.installation import ROOT
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.processes import build_environment, build_worker_command
from toolbench.running.servers import Postgres, Valkey

KEY_NAME = "TOOLBENCH_BENCHMARK_KEY"
SECRET_KEY = "sk-benchmark-0123456789abcdef"  # of no endpoint; there to be masked
_TIMEOUT_SECONDS = 120
_TICKS_PER_MS = os.sysconf("SC_CLK_TCK") / 1000


class Stack:
    """Runs from `with` to its end. Linux only: CPU is read from /proc, in steps of 10 ms.

    Args:
        folder: holds the data and is kept; without it, a folder of its own is thrown away at the end.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._is_kept = folder is not None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="tb-bench-", dir="/tmp"))
        self._children: dict[str, ChildProcess] = {}

    def __enter__(self) -> "Stack":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def worker_pid(self) -> int:
        return self._children["worker"].pid

    def measure_stored_run(self, base_url: str, *, trials: int, concurrency: int) -> LayerFigures:
        """Launches a run and waits for its end. The worker is the one process whose CPU is counted; PostgreSQL's is
        that of all its processes, launching and looking on included."""
        worker, postgres = self._worker_ms(), self._postgres_ms()
        printed = self.run_module("benchmarks.stored_run", base_url, str(trials), str(concurrency))
        worker, postgres = self._worker_ms() - worker, self._postgres_ms() - postgres
        seconds = json.loads(printed)["seconds"]
        return LayerFigures(worker / trials, trials / seconds, postgres / trials)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of processes that use the servers."""
        return self._environment

    def run_module(self, module: str, *arguments: str) -> str:
        """Run a module with this database and broker, and return what it printed to stdout."""
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def _start(self) -> None:
        sockets = self._folder / "s"
        sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / "static").mkdir(exist_ok=True)
        postgres, valkey = Postgres(self._folder / "postgres", sockets), Valkey(self._folder / "valkey", sockets)
        postgres.prepare(self._folder / "postgres.log")
        valkey.prepare()
        for name, server in (("postgres", postgres), ("valkey", valkey)):
            spec = ChildSpec(name, server.build_command(), server.environment, self._folder / name, server.stop_signal)
            child = self._children[name] = ChildProcess(spec, self._folder)
            _wait_until_ready(child, server.is_ready)
        postgres.create_database()
        shared = {
            "TOOLBENCH_VAR": str(self._folder),
            "DATABASE_URL": postgres.build_url(),
            "REDIS_URL": valkey.build_url(),
        }
        self._environment: Mapping[str, str] = build_environment({**shared, KEY_NAME: SECRET_KEY})
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=self._environment, check=True)
        command = build_confined_command(build_worker_command("bench"), death_signal=signal.SIGKILL)
        worker = self._children["worker"] = ChildProcess(
            ChildSpec("worker", command, self._environment, ROOT), self._folder
        )
        _wait_until_ready(worker, lambda: " ready." in worker.log.read_text(errors="replace"))

    def _stop(self) -> None:
        for child in reversed(self._children.values()):
            child.stop()
        if not self._is_kept:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _worker_ms(self) -> float:
        return sum(_read_cpu_ticks(self.worker_pid)[:2]) / _TICKS_PER_MS

    def _postgres_ms(self) -> float:
        """Of the postmaster, of its children, and of those that are gone."""
        postmaster = self._children["postgres"].pid
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        living = sum(sum(_read_cpu_ticks(int(pid))[:2]) for pid in children)
        return (living + sum(_read_cpu_ticks(postmaster))) / _TICKS_PER_MS


def _read_cpu_ticks(pid: int) -> tuple[int, int, int, int]:
    """User, system, and the same of children waited for; zeros for a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0, 0, 0
    user, system, children_user, children_system = map(int, fields[11:15])
    return user, system, children_user, children_system


def _wait_until_ready(child: ChildProcess, is_ready: Callable[[], bool]) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not is_ready():
        if child.poll_exit_code() is not None or time.monotonic() > until:
            raise RuntimeError(f"{child.spec.name} did not start:\n{child.log.read_text(errors='replace')}")
        time.sleep(0.05)
