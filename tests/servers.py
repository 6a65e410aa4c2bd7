"""Servers of a test session."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.environment import SESSION_FOLDER, SOCKET_FOLDER
from tests.wait import wait_until
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.servers import Postgres, Valkey

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class TestServers:
    """PostgreSQL without durability after a crash of the machine, and Valkey."""

    __test__ = False
    children: tuple[ChildProcess, ...]

    @classmethod
    def start(cls) -> "TestServers":
        """Start both servers and return as soon as both answer."""
        postgres = Postgres(SESSION_FOLDER / "postgres", SOCKET_FOLDER, is_durable=False)
        postgres.prepare(SESSION_FOLDER / "postgres.log")
        valkey = Valkey(SESSION_FOLDER / "valkey", SOCKET_FOLDER)
        valkey.prepare()
        children = (
            ChildProcess(
                ChildSpec(
                    "postgres", postgres.build_command(), postgres.environment, SESSION_FOLDER, postgres.stop_signal
                ),
                SESSION_FOLDER,
            ),
            ChildProcess(
                ChildSpec("valkey", valkey.build_command(), valkey.environment, valkey.working_folder), SESSION_FOLDER
            ),
        )
        _wait_until_ready(children[0], postgres.is_ready)
        _wait_until_ready(children[1], valkey.is_ready)
        postgres.create_database()
        return cls(children)

    def stop(self) -> None:
        for child in reversed(self.children):
            child.stop()


def _wait_until_ready(child: ChildProcess, is_ready: Callable[[], bool]) -> None:
    def describe() -> str:
        return f"{child.spec.name} did not start:\n{child.log.read_text(errors='replace')}"

    def is_ready_or_has_ended() -> bool:
        return is_ready() or child.poll_exit_code() is not None

    wait_until(is_ready_or_has_ended, every=0.02, seconds=_TIMEOUT_SECONDS, describe=describe)
    assert child.poll_exit_code() is None, describe()
