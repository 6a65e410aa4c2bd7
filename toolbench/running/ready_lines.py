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
        """The ready line; "" before it has come."""
        line, end, _ = self._received.partition(b"\n")
        return line.decode(errors="replace") if end else ""

    def read_available(self) -> None:
        """Read what has come so far, without waiting."""
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
        code = self.process.returncode
        self.stop()
        self.retry_at, self.retry_seconds = now + self.retry_seconds, min(self.retry_seconds * 2, _MAX_RETRY_SECONDS)
        return code == 0

    def stop(self) -> None:
        """Kill the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class ServiceRegistrar:
    """Registers the addresses of the children, removes those of ended ones, and repeats what failed. It never waits.

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
        self._say = print_message
        self._command = command
        self._clock = clock
        self._readers: dict[str, ReadyLineReader] = {}
        self._pings: dict[str, HealthPing] = {}
        self._ready: set[str] = set()  # whose ready line was taken for a sign of life
        self._registrations: dict[str, _Registration] = {}  # of those that are not told yet

    def watch(self, child: ChildProcess) -> None:
        """Start reading from a child; again after each restart."""
        self._readers[child.spec.name] = ReadyLineReader(child)

    def unregister(self, name: str) -> None:
        """Remove the address of a child that has ended; a registration that is running is stopped first."""
        announcement = self._readers.pop(name, None)
        if ping := self._pings.pop(name, None):
            ping.close()
        if announcement is not None and announcement.line:
            self._queue_registration(name, "")

    def tick(self) -> None:
        """Read new ready lines and continue the registrations."""
        for name, announcement in self._readers.items():
            begun = bool(announcement.line)
            announcement.read_available()
            if announcement.line and not begun:
                self._queue_registration(name, announcement.line)
                if can_be_pinged(_parse_url(announcement.line)):
                    self._pings[name] = HealthPing(_parse_url(announcement.line))
        for name in tuple(self._registrations):
            self._advance_registration(name)

    def list_alive(self) -> set[str]:
        """Return the children that have just said their ready line or answered, and those that cannot be asked.

        A child without a ready line is starting, and shows no sign of life.
        """
        now, announced = self._clock(), {name for name, announcement in self._readers.items() if announcement.line}
        just_said, self._ready = announced - self._ready, announced
        return {
            name for name in announced if name not in self._pings or self._pings[name].has_answered(now)
        } | just_said

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
        telling, now = self._registrations[name], self._clock()
        if telling.has_succeeded(now):
            self._drop_registration(name)
            if telling.line:
                self._say(f"{name} is ready at {_parse_url(telling.line)}")
        elif telling.process is None and now >= telling.retry_at:
            command = (*self._command, name) if telling.line else (*self._command, name, "--gone")
            telling.start(_build_confined(command), self._environment, now=now)

    def _drop_registration(self, name: str) -> None:
        if telling := self._registrations.pop(name, None):
            telling.stop()


def _build_confined(command: Sequence[str]) -> list[str]:
    return build_confined_command(list(command), death_signal=signal.SIGKILL)


def _parse_url(line: str) -> str:
    """Return the URL in a ready line; "" if it has none, which the lab refuses."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(line).get("url", ""))
    return ""
