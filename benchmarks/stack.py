"""Processes of `make up` without the web server: PostgreSQL, broker and one Celery worker."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.layers import LayerFigures
from benchmarks.temporary_servers import TemporaryServers
from toolbench.installation import ROOT
from toolbench.running.child_process import ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.processes import build_environment, build_worker_command
from toolbench.running.servers import Postgres, Valkey

KEY_NAME = "TOOLBENCH_BENCHMARK_KEY"
SECRET_KEY = "sk-benchmark-0123456789abcdef"  # no real key; it is there to be masked
_SECOND_WORKER = "worker-2"
_TICKS_PER_MS = os.sysconf("SC_CLK_TCK") / 1000


class Stack(TemporaryServers):
    """PostgreSQL with `fsync` on, a broker and a worker, which run during a `with` block.

    Linux only: CPU is read from /proc, in steps of 10 ms.

    Args:
        folder: folder for the data, which is kept; None for a temporary one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        is_kept = folder is not None
        super().__init__(folder or Path(tempfile.mkdtemp(prefix="tb-bench-", dir="/tmp")), is_kept=is_kept)

    @property
    def worker_pid(self) -> int:
        """Process id of the first worker."""
        return self.children["worker"].pid

    def measure_stored_run(self, base_url: str, *, trials: int, concurrency: int) -> LayerFigures:
        """Launch a run, wait for its end, and return its figures.

        CPU is that of the workers. PostgreSQL's is that of all its processes, also for the launch and for polling, but
        not for the check of the stored bytes, which is part of no run.

        Raises:
            subprocess.CalledProcessError: a trial, a step or a byte is missing.
        """
        command = [sys.executable, "-m", "benchmarks.stored_run", base_url, str(trials), str(concurrency)]
        worker, postgres = self.read_worker_ms(), self.read_postgres_ms()
        with subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            printed = process.stdout.readline()
            worker, postgres = self.read_worker_ms() - worker, self.read_postgres_ms() - postgres
            if process.wait():
                raise subprocess.CalledProcessError(process.returncode, command)
        seconds = json.loads(printed)["seconds"]
        return LayerFigures(worker / trials, trials / seconds, postgres / trials)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment for processes that use the servers."""
        return self._environment

    def run_module(self, module: str, *arguments: str) -> str:
        """Run a module with this database and broker; return what it printed."""
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def start(self) -> None:
        """Start both servers, migrate the database and start the worker."""
        postgres = Postgres(self.folder / "postgres", self.sockets)
        valkey = Valkey(self.folder / "valkey", self.sockets)
        postgres.prepare(self.folder / "postgres.log")
        valkey.prepare()
        self.start_server("postgres", postgres)
        self.start_server("valkey", valkey)
        postgres.create_database()
        shared = {
            "TOOLBENCH_VAR": str(self.folder),
            "DATABASE_URL": postgres.build_url(),
            "REDIS_URL": valkey.build_url(),
        }
        self._environment: Mapping[str, str] = build_environment({**shared, KEY_NAME: SECRET_KEY})
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=self._environment, check=True)
        self._start_worker("worker")

    def _start_worker(self, name: str) -> None:
        command = build_confined_command(build_worker_command(name), death_signal=signal.SIGKILL)
        worker = ChildSpec(name, command, self._environment, ROOT)
        self.start_child(worker, lambda child: " ready." in child.log.read_text(errors="replace"))

    @contextmanager
    def run_second_worker(self) -> Iterator[None]:
        """Run another worker process during the block."""
        self._start_worker(_SECOND_WORKER)
        try:
            yield
        finally:
            self.children.pop(_SECOND_WORKER).stop()

    def read_worker_ms(self) -> float:
        """Return the CPU time of all running workers."""
        pids = [child.pid for name, child in self.children.items() if name in ("worker", _SECOND_WORKER)]
        return sum(sum(_read_cpu_ticks(pid)[:2]) for pid in pids) / _TICKS_PER_MS

    def read_postgres_ms(self) -> float:
        """Return the CPU time of the postmaster and of its children, ended ones included."""
        postmaster = self.children["postgres"].pid
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        living = sum(sum(_read_cpu_ticks(int(pid))[:2]) for pid in children)
        return (living + sum(_read_cpu_ticks(postmaster))) / _TICKS_PER_MS


def _read_cpu_ticks(pid: int) -> tuple[int, int, int, int]:
    """Return user and system time, and both of ended children; zeros for a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0, 0, 0
    user, system, children_user, children_system = map(int, fields[11:15])
    return user, system, children_user, children_system
