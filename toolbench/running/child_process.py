"""Child processes and the specifications they are started from."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAX_LOG_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Specification of a child process.

    Attributes:
        environment: The complete environment of the child.
        announces: The first line on standard output is a ready line (JSON with the address served).
        beats: The child writes heartbeats to the database.
        depends_on: Names of the children without which it cannot write heartbeats.
        handed: File descriptors that the child inherits.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    announces: bool = False
    beats: bool = False
    depends_on: frozenset[str] = frozenset()
    handed: tuple[int, ...] = ()


class ChildProcess:
    """Running process of a specification.

    Its output goes to `<logs>/<name>.log`. A log over 2 MB is renamed to `.log.1` before the start.
    `handed` are file descriptors that it inherits in addition to those of the specification.
    """

    def __init__(self, spec: ChildSpec, logs: Path, handed: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self.log = logs / f"{spec.name}.log"
        if self.log.exists() and self.log.stat().st_size > _MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                spec.command,
                cwd=spec.folder,
                env=dict(spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if spec.announces else output,
                stderr=output,
                pass_fds=(*spec.handed, *handed),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process number."""
        return self.process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, or None while the process runs.

        The call also reaps an ended process, so that it is never taken for a running one.
        """
        return self.process.poll()

    def request_stop(self) -> None:
        """Send the stop signal if the process runs."""
        if self.exit_code() is None:
            self.process.send_signal(self.spec.stop_signal)

    def stop(self) -> None:
        """Request a stop, wait for at most `spec.stop_seconds`, then kill the process if it still runs."""
        self.request_stop()
        try:
            self.process.wait(self.spec.stop_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self.close()

    def kill(self) -> None:
        """Kill every process of the group and wait until the child has ended."""
        self._kill_group()
        self.process.wait()

    def close(self) -> None:
        """Close the pipe of an ended child and kill the processes that it had started."""
        self._kill_group()
        if self.process.stdout:
            self.process.stdout.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
