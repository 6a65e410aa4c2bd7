"""Reading of the ready lines of child processes, and registration of the addresses in these lines."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from toolbench.installation import ROOT, replace_wildcard_host
from toolbench.running.child_process import ChildProcess
from toolbench.running.database_user import build_confined_command
from toolbench.running.pings import HealthPing, find_ping_address

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
        while output := self._read_chunk():
            if b"\n" not in self._received:
                self._received += output
                output = self._received.partition(b"\n")[2]
            if output:
                with suppress(OSError), self._log.open("ab") as log:  # the disk may be full
                    log.write(output)

    def _read_chunk(self) -> bytes:
        if self._pipe.closed:
            return b""
        try:
            return os.read(self._pipe.fileno(), 65536)
        except BlockingIOError:
            return b""


@dataclass(slots=True)
class _Registration:
    """Registration of one child's address, or its removal. Times are readings of the registrar's clock.

    Attributes:
        line: the ready line; "" to remove the address of a child that has ended.
        process: the process that registers the address; None between two attempts.
        deadline: when the process is killed if it still runs.
        retry_at: when the next attempt may start.
        retry_seconds: pause after the next failure.
    """

    line: str
    process: subprocess.Popen[bytes] | None = None
    deadline: float = 0.0
    retry_at: float = 0.0
    retry_seconds: float = _MIN_RETRY_SECONDS

    def start(self, command: Sequence[str], environment: Mapping[str, str], *, now: float) -> None:
        """Start the process that registers the address, or set the time of the next attempt if that fails."""
        self.deadline = now + _MAX_REGISTRATION_SECONDS
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd=ROOT,
                start_new_session=True,
            )
        except OSError:  # no memory for a process, for instance
            self._postpone(now)
            return
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stdin:
            stdin.write(self.line.encode())

    def reap(self, now: float) -> bool:
        """Reap the process if it has ended, and return whether the registration succeeded.

        A process whose deadline has passed is killed, and its registration has failed. After a failure, set the time of
        the next attempt; the pause doubles up to `_MAX_RETRY_SECONDS`.
        """
        if self.process is None:
            return False
        if self.process.poll() is None and now < self.deadline:
            return False
        exit_code = self.process.returncode
        self.stop()
        self._postpone(now)
        return exit_code == 0

    def _postpone(self, now: float) -> None:
        self.retry_at, self.retry_seconds = now + self.retry_seconds, min(self.retry_seconds * 2, _MAX_RETRY_SECONDS)

    def stop(self) -> None:
        """Kill the process if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class ServiceRegistrar:
    """Registrar of the addresses of local servers, which removes the address of a child that has ended.

    Failed registrations are repeated. No method waits for another process, except for one that it has just killed.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        print_message: Callable[[str], None],
        *,
        command: Sequence[str] = (sys.executable, "-m", "toolbench.manage", "register_service"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Build a registrar without children.

        Args:
            environment: environment of the processes that register an address.
            print_message: called with sentences for the terminal.
            command: program that registers an address. The child's name is appended as an argument, and the program
                reads the ready line from its standard input. To remove an address, `--gone` is appended as well.
            clock: monotonic clock in seconds.
        """
        self._environment = environment
        self._print_message = print_message
        self._command = command
        self._clock = clock
        self._readers: dict[str, ReadyLineReader] = {}
        self._pings: dict[str, HealthPing] = {}
        self._ready_names: set[str] = set()  # children that were ready at the last call of list_responsive_names
        self._registrations: dict[str, _Registration] = {}  # pending, by the child's name

    def watch(self, child: ChildProcess) -> None:
        """Start to read from a child with a ready line. Call it after each start of the child."""
        self._readers[child.spec.name] = ReadyLineReader(child)

    def unregister(self, name: str) -> None:
        """Queue the removal of the address of a child that has ended, in place of a pending registration.

        Nothing is queued for a child that ended before its ready line.
        """
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
                if address := find_ping_address(_parse_url(reader.line)):
                    self._pings[name] = HealthPing(address)
        for name in tuple(self._registrations):
            self._advance_registration(name)

    def list_responsive_names(self) -> set[str]:
        """Send the pings that are due, and return the names of children with a sign of life since the last call.

        A sign is a new ready line or an answered ping. A child with a ready line that cannot be pinged always counts.
        """
        now, ready_names = self._clock(), {name for name, reader in self._readers.items() if reader.line}
        newly_ready_names, self._ready_names = ready_names - self._ready_names, ready_names
        return {
            name for name in ready_names if name not in self._pings or self._pings[name].advance(now)
        } | newly_ready_names

    def close(self) -> None:
        """Kill the processes that register addresses, drop pending registrations and close all pings."""
        for name in tuple(self._registrations):
            self._drop_registration(name)
        for ping in self._pings.values():
            ping.close()

    def _queue_registration(self, name: str, line: str) -> None:
        """Queue a registration in place of a pending one of the same child; "" as the line queues a removal."""
        self._drop_registration(name)
        self._registrations[name] = _Registration(line)

    def _advance_registration(self, name: str) -> None:
        registration, now = self._registrations[name], self._clock()
        if registration.reap(now):
            self._drop_registration(name)
            if registration.line:
                url = replace_wildcard_host(_parse_url(registration.line), self._environment.get("TOOLBENCH_BASE", ""))
                self._print_message(f"{name} is ready at {url}")
        elif registration.process is None and now >= registration.retry_at:
            command = [*self._command, name, *([] if registration.line else ["--gone"])]
            command = build_confined_command(list(command), death_signal=signal.SIGKILL)
            registration.start(command, self._environment, now=now)

    def _drop_registration(self, name: str) -> None:
        if registration := self._registrations.pop(name, None):
            registration.stop()


def _parse_url(line: str) -> str:
    """Return the URL in a ready line; "" if it has none."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(line).get("url", ""))
    return ""
