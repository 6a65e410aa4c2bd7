"""PostgreSQL with `fsync` and `synchronous_commit` on, in a temporary folder."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.temporary_servers import TemporaryServers
from toolbench.installation import ROOT
from toolbench.running.processes import build_environment
from toolbench.running.servers import Postgres

_TEMPLATE = "toolbench"


class DurableDatabase(TemporaryServers):
    """Server with a migrated database for each of several processes, which runs during a `with` block."""

    def __init__(self, databases: int) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="tb-crashes-", dir="/tmp")))
        self._databases = databases
        self._postgres = Postgres(self.folder / "postgres", self.sockets)

    def build_environment(self, number: int | None = None) -> Mapping[str, str]:
        """Return the environment of a process that uses the database of this number; None for the template."""
        name = _TEMPLATE if number is None else f"crashes_{number}"
        return build_environment(
            {
                "TOOLBENCH_VAR": str(self.folder),
                "DATABASE_URL": self._postgres.build_url(name),
                "REDIS_URL": f"unix://{self.folder}/no-broker.sock",  # the player catches messages before they are sent
            }
        )

    def start(self) -> None:
        """Start the server, migrate the template database and copy it for each process."""
        self._postgres.prepare(self.folder / "prepare.log")
        self.start_server("postgres", self._postgres)
        self._postgres.create_database(_TEMPLATE)
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=self.build_environment(), check=True)
        with psycopg.connect(self._postgres.build_url("postgres"), autocommit=True) as session:
            for number in range(self._databases):
                copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                session.execute(copy.format(sql.Identifier(f"crashes_{number}"), sql.Identifier(_TEMPLATE)))
