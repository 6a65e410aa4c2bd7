"""Child processes, and the specifications from which they are started."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAX_LOG_BYTES = 2_000_000
_MAX_RUNNING_LOG_BYTES = 20_000_000
_MAX_LINE_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Specification of a child process.

    Attributes:
        name: unique name of the child; its log is `<name>.log`.
        command: program and arguments.
        environment: the complete environment of the child.
        folder: folder in which the child starts.
        stop_signal: signal that asks the child to stop.
        stop_seconds: time that the child may take to stop before it is killed.
        has_ready_line: whether the first line of the child's standard output is a ready line.
        has_heartbeats: whether the child writes heartbeats to the database.
        depends_on: names of the other children without which this one cannot write heartbeats.
        inherited_handles: file descriptors that the child inherits.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    has_ready_line: bool = False
    has_heartbeats: bool = False
    depends_on: frozenset[str] = frozenset()
    inherited_handles: tuple[int, ...] = ()


class ChildProcess:
    """Process that is started from a specification.

    Its output goes to `<logs>/<name>.log`, except for the standard output of a child with a ready line, which goes to a
    pipe. Before the start, a log of more than `_MAX_LOG_BYTES` is renamed to `<name>.log.1`.
    """

    def __init__(self, spec: ChildSpec, logs: Path, inherited_handles: tuple[int, ...] = ()) -> None:
        """Start the process.

        Args:
            spec: the specification.
            logs: folder of the logs.
            inherited_handles: file descriptors that the process inherits in addition to those of the specification.
        """
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
                stdout=subprocess.PIPE if spec.has_ready_line else output,
                stderr=output,
                pass_fds=(*spec.inherited_handles, *inherited_handles),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process number."""
        return self.process.pid

    def poll_exit_code(self) -> int | None:
        """Return the exit code, or None while the process runs.

        The call reaps a process that has ended, so that a zombie is never taken for a running process.
        """
        return self.process.poll()

    def limit_log(self) -> None:
        """Copy a log of more than `_MAX_RUNNING_LOG_BYTES` to `<name>.log.1`, and empty the log.

        The process may write to the log meanwhile. If the copy fails, the log is emptied all the same.
        """
        with suppress(OSError):  # the log may be deleted
            if self.log.stat().st_size > _MAX_RUNNING_LOG_BYTES:
                self._copy_log(self.log.with_suffix(".log.1"))
                os.truncate(self.log, 0)

    def _copy_log(self, copy: Path) -> None:
        """Copy the log. If that fails, on a full disk for instance, delete the incomplete copy."""
        try:
            shutil.copyfile(self.log, copy)
        except OSError:
            with suppress(OSError):
                copy.unlink()

    def read_last_log_line(self) -> str:
        """Return the last non-blank line in the last `_MAX_LINE_BYTES` of the log; "" if there is none."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_LINE_BYTES))
                end = file.read()
        except OSError:  # the user may delete logs meanwhile
            return ""
        return end.decode(errors="replace").strip().rpartition("\n")[2]

    def request_stop(self) -> None:
        """Send the stop signal, unless the process has ended."""
        if self.poll_exit_code() is None:
            self.process.send_signal(self.spec.stop_signal)

    def stop(self) -> None:
        """Request a stop and wait for the end; kill the child if it still runs after `spec.stop_seconds`.

        Afterwards, kill the processes of its group that still run.
        """
        self.request_stop()
        try:
            self.process.wait(self.spec.stop_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self.close()

    def kill(self) -> None:
        """Kill the child with all processes of its group, and wait until the child has ended."""
        self._kill_group()
        self.process.wait()

    def close(self) -> None:
        """Close the pipe of a child that has ended, and kill the processes of its group that still run."""
        self._kill_group()
        if self.process.stdout:
            self.process.stdout.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
