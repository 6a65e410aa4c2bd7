"""A PostgreSQL that keeps its promises (`fsync` and `synchronous_commit` on), in a folder that is thrown away."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import sql

from toolbench.installation import ROOT
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.processes import build_environment
from toolbench.running.servers import Postgres

_TEMPLATE = "toolbench"
_START_SECONDS = 120


class DurableDatabase:
    """Server with a migrated database for each of several processes, from `with` to its end."""

    def __init__(self, databases: int) -> None:
        self._databases = databases
        self._folder = Path(tempfile.mkdtemp(prefix="tb-crashes-", dir="/tmp"))
        sockets = self._folder / "s"
        sockets.mkdir(mode=0o700)
        (self._folder / "static").mkdir()
        self._postgres = Postgres(self._folder / "postgres", sockets)
        self._child: ChildProcess | None = None

    def __enter__(self) -> "DurableDatabase":
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

    def build_environment(self, number: int | None = None) -> Mapping[str, str]:
        """Return the environment of a process that uses the database of this number; None for the template."""
        name = _TEMPLATE if number is None else f"crashes_{number}"
        return build_environment(
            {
                "TOOLBENCH_VAR": str(self._folder),
                "DATABASE_URL": self._postgres.build_url(name),
                "REDIS_URL": f"unix://{self._folder}/no-broker.sock",  # messages are caught before they are sent
            }
        )

    def _start(self) -> None:
        self._postgres.prepare(self._folder / "prepare.log")
        spec = ChildSpec(
            "postgres",
            self._postgres.build_command(),
            self._postgres.environment,
            self._folder,
            self._postgres.stop_signal,
        )
        self._child = ChildProcess(spec, self._folder)
        until = time.monotonic() + _START_SECONDS
        while not self._postgres.is_ready():
            if self._child.poll_exit_code() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start:\n{self._child.log.read_text(errors='replace')}")
            time.sleep(0.05)
        self._postgres.create_database(_TEMPLATE)
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=self.build_environment(), check=True)
        with psycopg.connect(self._postgres.build_url("postgres"), autocommit=True) as session:
            for number in range(self._databases):
                copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                session.execute(copy.format(sql.Identifier(f"crashes_{number}"), sql.Identifier(_TEMPLATE)))

    def _stop(self) -> None:
        if self._child is not None:
            self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
