"""Hosts on this machine: network namespaces with names of their own, one cable to each server.

Call `enter_namespace(module, "--net")` first: the servers' addresses then exist in a namespace of this program alone.
"""

import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path

from benchmarks.start_and_stop import StartAndStop
from toolbench.running.database_user import build_confined_command

_START_SECONDS = 30.0
_SLOW_OPTIONS = ("burst", "4kb", "latency", "2000ms")


class Server(IntEnum):
    """A server that hosts reach by a cable of its own; its number is the last part of its address."""

    DATABASE = 1
    BROKER = 2
    PROVIDER = 3

    @property
    def address(self) -> str:
        """The address at which every host finds it."""
        return f"10.78.0.{self.value}"


class Host:
    """A host with a network and a name of its own, which reaches every server at first."""

    def __init__(self, number: int) -> None:
        self.name = f"host-{number}"
        self._number = number
        # The namespaces live as long as this process, which ends with the program.
        holder = ["unshare", "--net", "--uts", "sh", "-c", f"hostname {self.name} && exec sleep infinity"]
        self._holder = subprocess.Popen(build_confined_command(holder, death_signal=signal.SIGKILL))

    def start(self) -> None:
        """Lay the cables.

        Raises:
            RuntimeError: the namespaces are not there after 30 s.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_named():
            if self._holder.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} could not be made: this machine allows no network namespace.")
            time.sleep(0.02)
        self._run("ip", "link", "set", "lo", "up")
        for server in Server:
            self._lay_cable(server)

    def stop(self) -> None:
        """End the process that holds the namespaces. They end with the last process that runs in them."""
        self._holder.kill()
        self._holder.wait()

    def build_command(self, command: Iterable[str]) -> list[str]:
        """Return the command that runs another one on this host."""
        return ["nsenter", "--target", str(self._holder.pid), "--net", "--uts", "--", *command]

    def get_address(self, server: Server) -> str:
        """Return the host's own address on the cable to a server."""
        return self._build_addresses(server)[1]

    def unplug(self, servers: Iterable[Server] = Server) -> None:
        """Pull the cables to these servers: packets are lost, and neither end gets an error."""
        for server in servers:
            _run("ip", "link", "set", self._cable(server), "down")

    def plug(self, servers: Iterable[Server] = Server) -> None:
        """Put the cables to these servers back."""
        for server in servers:
            _run("ip", "link", "set", self._cable(server), "up")

    def slow(self, kilobits: int) -> None:
        """Limit the rate of each cable in each direction; packets wait for up to 2 s and are then dropped."""
        for server in Server:
            limit = ("root", "tbf", "rate", f"{kilobits}kbit", *_SLOW_OPTIONS)
            _run("tc", "qdisc", "replace", "dev", self._cable(server), *limit)
            self._run("tc", "qdisc", "replace", "dev", _card(server), *limit)

    def hurry(self) -> None:
        """Take the limit of `slow` away."""
        for server in Server:
            _run("tc", "qdisc", "del", "dev", self._cable(server), "root")
            self._run("tc", "qdisc", "del", "dev", _card(server), "root")

    def _is_named(self) -> bool:
        pid = str(self._holder.pid)
        if not Path(f"/proc/{pid}/ns/net").exists():
            return False
        found = subprocess.run(
            ["nsenter", "--target", pid, "--uts", "--", "hostname"], capture_output=True, text=True, check=False
        )
        return found.stdout.strip() == self.name

    def _lay_cable(self, server: Server) -> None:
        cable, card = self._cable(server), _card(server)
        near, far = self._build_addresses(server)
        _run("ip", "link", "add", cable, "type", "veth", "peer", "name", card)
        _run("ip", "link", "set", card, "netns", str(self._holder.pid))
        _run("ip", "address", "add", f"{near}/30", "dev", cable)
        _run("ip", "link", "set", cable, "up")
        self._run("ip", "address", "add", f"{far}/30", "dev", card)
        self._run("ip", "link", "set", card, "up")
        self._run("ip", "route", "add", f"{server.address}/32", "via", near, "dev", card)

    def _build_addresses(self, server: Server) -> tuple[str, str]:
        """Return the addresses of both ends of a cable, the host's last."""
        return f"10.77.{self._number}.{4 * server + 1}", f"10.77.{self._number}.{4 * server + 2}"

    def _cable(self, server: Server) -> str:
        return f"h{self._number}-{server.name.lower()}"

    def _run(self, *command: str) -> None:
        _run(*self.build_command(command))


class HostNetwork(StartAndStop):
    """Addresses of the servers in the namespace of this program, and hosts that reach them."""

    def __init__(self, count: int) -> None:
        _run("ip", "link", "set", "lo", "up")
        for server in Server:
            _run("ip", "address", "add", f"{server.address}/32", "dev", "lo")
        self.hosts: Sequence[Host] = tuple(Host(number) for number in range(1, count + 1))

    def start(self) -> None:
        """Start the hosts."""
        for host in self.hosts:
            host.start()

    def stop(self) -> None:
        """Stop the hosts."""
        for host in self.hosts:
            host.stop()


def _card(server: Server) -> str:
    """Return the name of a cable at the host's end."""
    return server.name.lower()


def _run(*command: str) -> None:
    """Run a command.

    Raises:
        RuntimeError: it failed; the message has what it printed.
    """
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {found.stderr.strip()}")
