"""Read the ready lines of child processes and register their addresses."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from toolbench.running.child_process import ChildProcess
from toolbench.running.database_user import build_confined_command
from toolbench.running.paths import ROOT
from toolbench.running.pings import HealthPing, can_be_pinged

_MAX_REGISTRATION_SECONDS = 60
_MIN_RETRY_SECONDS = 0.5
_MAX_RETRY_SECONDS = 30.0


class ReadyLineReader:
    """Reader of a child's standard output: its first line is the ready line, the rest goes to its log."""

    def __init__(self, child: ChildProcess) -> None:
        assert child.process.stdout is not None
        self._log = child.log
        self._pipe = child.process.stdout
        self._received = b""
        os.set_blocking(self._pipe.fileno(), False)

    @property
    def line(self) -> str:
        """The ready line; "" before it is complete."""
        line, end, _ = self._received.partition(b"\n")
        return line.decode(errors="replace") if end else ""

    def read_available(self) -> None:
        """Read the output that is available, without waiting."""
        while text := self._read():
            if self.line:
                with self._log.open("ab") as log:
                    log.write(text)
            else:
                self._received += text

    def _read(self) -> bytes:
        if self._pipe.closed:
            return b""
        try:
            return os.read(self._pipe.fileno(), 65536)
        except BlockingIOError:
            return b""


@dataclass(slots=True)
class _Registration:
    """The registration of one child, and when to try it again. Times are those of the registrar's clock.

    Attributes:
        line: the ready line; "" for a child that has ended.
    """

    line: str
    process: subprocess.Popen[bytes] | None = None
    deadline: float = 0.0
    retry_at: float = 0.0
    retry_seconds: float = _MIN_RETRY_SECONDS

    def start(self, command: Sequence[str], environment: Mapping[str, str], *, now: float) -> None:
        """Start the process that registers the child."""
        self.deadline = now + _MAX_REGISTRATION_SECONDS
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd=ROOT,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stdin:
            stdin.write(self.line.encode())

    def has_succeeded(self, now: float) -> bool:
        """Return whether the registration has succeeded.

        A process that hangs is killed; after each failure the next attempt waits longer.
        """
        if self.process is None:
            return False
        if self.process.poll() is None and now < self.deadline:
            return False
        exit_code = self.process.returncode
        self.stop()
        self.retry_at, self.retry_seconds = now + self.retry_seconds, min(self.retry_seconds * 2, _MAX_RETRY_SECONDS)
        return exit_code == 0

    def stop(self) -> None:
        """Kill the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class ServiceRegistrar:
    """Registrar of the addresses of children.

    It removes the addresses of ended children and repeats failed registrations. It never waits.

    `command` is called with the child's name and gets the ready line on its standard input; `--gone` follows the name
    of a child that has ended.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        print_message: Callable[[str], None],
        *,
        command: Sequence[str] = (sys.executable, "manage.py", "register_service"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = environment
        self._print_message = print_message
        self._command = command
        self._clock = clock
        self._readers: dict[str, ReadyLineReader] = {}
        self._pings: dict[str, HealthPing] = {}
        self._ready_names: set[str] = set()  # names of children whose ready line has counted as a sign of life
        self._registrations: dict[str, _Registration] = {}  # pending registrations by child name

    def watch(self, child: ChildProcess) -> None:
        """Start reading from a child; again after each restart."""
        self._readers[child.spec.name] = ReadyLineReader(child)

    def unregister(self, name: str) -> None:
        """Remove the address of a child that has ended; a registration that is running is stopped first."""
        reader = self._readers.pop(name, None)
        if ping := self._pings.pop(name, None):
            ping.close()
        if reader is not None and reader.line:
            self._queue_registration(name, "")

    def tick(self) -> None:
        """Read new ready lines and continue the registrations."""
        for name, reader in self._readers.items():
            had_line = bool(reader.line)
            reader.read_available()
            if reader.line and not had_line:
                self._queue_registration(name, reader.line)
                if can_be_pinged(_parse_url(reader.line)):
                    self._pings[name] = HealthPing(_parse_url(reader.line))
        for name in tuple(self._registrations):
            self._advance_registration(name)

    def list_alive(self) -> set[str]:
        """Return the names of children that show a sign of life now.

        A sign is a new ready line or an answered ping. A child with a ready line that cannot be pinged always counts.
        """
        now, ready_names = self._clock(), {name for name, announcement in self._readers.items() if announcement.line}
        newly_ready_names, self._ready_names = ready_names - self._ready_names, ready_names
        return {
            name for name in ready_names if name not in self._pings or self._pings[name].has_answered(now)
        } | newly_ready_names

    def close(self) -> None:
        """End all registrations and requests."""
        for name in tuple(self._registrations):
            self._drop_registration(name)
        for ping in self._pings.values():
            ping.close()

    def _queue_registration(self, name: str, line: str) -> None:
        """Queue a registration instead of an earlier one of the same child."""
        self._drop_registration(name)
        self._registrations[name] = _Registration(line)

    def _advance_registration(self, name: str) -> None:
        registration, now = self._registrations[name], self._clock()
        if registration.has_succeeded(now):
            self._drop_registration(name)
            if registration.line:
                self._print_message(f"{name} is ready at {_parse_url(registration.line)}")
        elif registration.process is None and now >= registration.retry_at:
            command = (*self._command, name) if registration.line else (*self._command, name, "--gone")
            registration.start(_build_confined(command), self._environment, now=now)

    def _drop_registration(self, name: str) -> None:
        if registration := self._registrations.pop(name, None):
            registration.stop()


def _build_confined(command: Sequence[str]) -> list[str]:
    return build_confined_command(list(command), death_signal=signal.SIGKILL)


def _parse_url(line: str) -> str:
    """Return the URL in a ready line; "" if it has none."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(line).get("url", ""))
    return ""
