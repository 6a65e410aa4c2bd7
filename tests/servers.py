"""The servers of a test session."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.environment import FOLDER, SOCKETS
from toolbench.running.child_process import Child, Spec
from toolbench.running.servers import Postgres, Valkey

_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class TestServers:
    """A PostgreSQL without safety against a crash of the machine, and a Valkey."""

    __test__ = False
    children: tuple[Child, ...]

    @classmethod
    def start(cls) -> "TestServers":
        """Returns when both answer."""
        postgres = Postgres(FOLDER / "postgres", SOCKETS, careless=True)
        postgres.prepare(FOLDER / "postgres.log")
        valkey = Valkey(FOLDER / "valkey", SOCKETS)
        valkey.prepare()
        children = (
            Child(Spec("postgres", postgres.command(), postgres.environment, FOLDER, postgres.stop_signal), FOLDER),
            Child(Spec("valkey", valkey.command(), valkey.environment, valkey.working_folder), FOLDER),
        )
        _wait(children[0], postgres.is_ready)
        _wait(children[1], valkey.is_ready)
        postgres.make_database()
        return cls(children)

    def stop(self) -> None:
        for child in reversed(self.children):
            child.stop()


def _wait(child: Child, is_ready: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not is_ready():
        if child.exit_code() is not None or time.monotonic() > until:
            raise RuntimeError(f"{child.spec.name} did not start:\n{child.log.read_text(errors='replace')}")
        time.sleep(0.02)
