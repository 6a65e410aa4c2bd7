"""Servers and `make up` on one host, and workers on other hosts."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.hosts.network import Host, HostNetwork, Server
from benchmarks.temporary_servers import TemporaryServers
from toolbench.installation import ROOT
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.servers import Postgres, Valkey

KEY_FILE = "provider_keys.key"
LEASE_SECONDS = 5.0
_DATABASE_URL = f"postgresql://toolbench:toolbench@{Server.DATABASE.address}/toolbench"
_BROKER_URL = f"redis://{Server.BROKER.address}:6379/0"
# Intervals are short, so that lost work is found soon.
_SETTINGS = {
    "DATABASE_URL": _DATABASE_URL,
    "REDIS_URL": _BROKER_URL,
    "LOCAL_MODEL": "0",
    "WORKERS": "1",
    "PORT": "8000",
    "TOOLBENCH_LEASE_SECONDS": str(LEASE_SECONDS),
    "TOOLBENCH_HEARTBEAT_SECONDS": "0.5",
    "TOOLBENCH_SWEEP_SECONDS": "0.5",
    "TOOLBENCH_SHIFT_SECONDS": "5",
}
_LIBFAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def has_libfaketime() -> bool:
    """Return whether libfaketime is installed, which sets the clock of a process."""
    return bool(_LIBFAKETIME)


class HostsStack(TemporaryServers):
    """Stack that runs during a `with` block, in the namespace of the network."""

    def __init__(self, folder: Path, network: HostNetwork) -> None:
        super().__init__(folder)
        self._network = network
        self.environment = {**os.environ, **_SETTINGS, "TOOLBENCH_VAR": str(folder / "var")}
        for name in ("ALLOWED_HOSTS", "HOST", "TOOLBENCH_BASE"):
            self.environment.pop(name, None)

    def start(self) -> None:
        """Start the servers, `make up`, and a worker on each host."""
        (self.folder / "var").mkdir()
        self._start_postgres()
        self._start_valkey()
        command = build_confined_command([sys.executable, "-m", "toolbench.running", "up"], death_signal=signal.SIGTERM)
        up = ChildSpec("up", command, self.environment, ROOT, signal.SIGINT, 30.0)
        self.start_child(up, lambda child: "simulated is ready" in _read_log(child))
        for host in self._network.hosts:
            self.start_worker(host)

    def start_worker(self, host: Host, *, clock_seconds: int = 0) -> None:
        """Start a worker on a host, in place of the one that runs there.

        Args:
            host: the host.
            clock_seconds: seconds by which its clock is ahead; negative for a clock that is behind.
        """
        if running := self.children.pop(host.name, None):
            running.stop()
            running.log.rename(running.log.with_suffix(".log.1"))
        command = host.build_command([sys.executable, "-m", "toolbench.running", "worker"])
        environment = self.environment | {"TOOLBENCH_VAR": str(self._build_var(host))}
        if clock_seconds:
            environment |= {"LD_PRELOAD": str(_LIBFAKETIME[0]), "FAKETIME": f"{clock_seconds:+d}s"}
            environment |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        spec = ChildSpec(
            host.name,
            build_confined_command(command, death_signal=signal.SIGKILL),
            environment,
            ROOT,
            stop_seconds=30.0,
        )
        self.start_child(spec, lambda child: " ready." in _read_log(child))

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with psycopg.connect(self._postgres.build_url(), autocommit=True) as session:
            return session.execute(statement.encode(), parameters).fetchall()

    def _build_var(self, host: Host) -> Path:
        """Return the data folder of a host, which at first has only the key file of the first host."""
        var = self.folder / host.name
        if not var.exists():
            var.mkdir()
            (var / KEY_FILE).write_bytes((self.folder / "var" / KEY_FILE).read_bytes())
            (var / KEY_FILE).chmod(0o600)
        return var

    def _start_postgres(self) -> None:
        self._postgres = Postgres(self.folder / "postgres", self.sockets)
        self._postgres.prepare(self.folder / "postgres.log")
        with (self.folder / "postgres" / "pg_hba.conf").open("a") as rules:
            rules.write("host toolbench toolbench 10.76.0.0/14 scram-sha-256\n")
        spec = self._build_spec("postgres", self._postgres, "-c", "listen_addresses=*")
        self.start_child(spec, lambda child: self._postgres.is_ready())
        with psycopg.connect(self._postgres.build_url("postgres"), autocommit=True) as session:
            session.execute("CREATE ROLE toolbench LOGIN PASSWORD 'toolbench'")
            session.execute("CREATE DATABASE toolbench OWNER toolbench")

    def _start_valkey(self) -> None:
        valkey = Valkey(self.folder / "valkey", self.sockets)
        valkey.prepare()
        network = ("--port", "6379", "--bind", "*", "--protected-mode", "no")
        self.start_child(self._build_spec("valkey", valkey, *network), lambda child: valkey.is_ready())

    def _build_spec(self, name: str, server: Postgres | Valkey, *options: str) -> ChildSpec:
        command = [*server.build_command(), *options]
        return ChildSpec(name, command, server.environment, self.folder / name, server.stop_signal)


def _read_log(child: ChildProcess) -> str:
    return child.log.read_text(errors="replace")
