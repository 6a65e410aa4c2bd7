"""Servers that run during a `with` block of a benchmark."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.start_and_stop import StartAndStop
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.servers import Postgres, Valkey

_START_SECONDS = 300


class TemporaryServers(StartAndStop):
    """Child processes with a folder for data, logs and sockets, which is deleted after they have stopped.

    Args:
        folder: the folder.
        is_kept: whether the folder is kept.
    """

    def __init__(self, folder: Path, *, is_kept: bool = False) -> None:
        self.folder = folder
        self.sockets = folder / "s"
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "static").mkdir(exist_ok=True)
        self.children: dict[str, ChildProcess] = {}
        self._is_kept = is_kept

    def stop(self) -> None:
        """Stop the servers, the last one first, and delete the folder."""
        for child in reversed(self.children.values()):
            child.stop()
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_server(self, name: str, server: Postgres | Valkey) -> None:
        """Start a prepared server, and wait until it is ready."""
        spec = ChildSpec(name, server.build_command(), server.environment, self.folder / name, server.stop_signal)
        self.start_child(spec, lambda child: server.is_ready())

    def start_child(self, spec: ChildSpec, is_ready: Callable[[ChildProcess], bool]) -> None:
        """Start a process, and wait until it is ready.

        Raises:
            RuntimeError: the process has ended, or is not ready after 300 s.
        """
        child = self.children[spec.name] = ChildProcess(spec, self.folder)
        deadline = time.monotonic() + _START_SECONDS
        while not is_ready(child):
            if child.poll_exit_code() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{spec.name} did not start:\n{child.log.read_text(errors='replace')}")
            time.sleep(0.05)
