"""Simulated hosts on this machine: network namespaces with host names, and a link to each server.

Call `enter_namespace(module, "--net")` first, so that the addresses of the servers exist in a namespace of this program
alone.
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
    """Server that hosts reach by a link of its own. Its number is the last part of its address."""

    DATABASE = 1
    BROKER = 2
    PROVIDER = 3

    @property
    def address(self) -> str:
        """Address at which every host reaches it."""
        return f"10.78.0.{self.value}"


class Host:
    """Host with a network and a name of its own. After the start it reaches every server."""

    def __init__(self, number: int) -> None:
        self.name = f"host-{number}"
        self._number = number
        # The namespaces exist as long as this process, which ends with the program.
        holder = ["unshare", "--net", "--uts", "sh", "-c", f"hostname {self.name} && exec sleep infinity"]
        self._holder = subprocess.Popen(build_confined_command(holder, death_signal=signal.SIGKILL))

    def start(self) -> None:
        """Wait for the namespaces and add the links.

        Raises:
            RuntimeError: the namespaces do not exist after 30 s.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_named():
            if self._holder.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} was not created: this machine allows no network namespace.")
            time.sleep(0.02)
        self._run("ip", "link", "set", "lo", "up")
        for server in Server:
            self._add_link(server)

    def stop(self) -> None:
        """Kill the process of the namespaces. They end with the last process that runs in them."""
        self._holder.kill()
        self._holder.wait()

    def build_command(self, command: Iterable[str]) -> list[str]:
        """Return the command that runs another one on this host."""
        return ["nsenter", "--target", str(self._holder.pid), "--net", "--uts", "--", *command]

    def get_address(self, server: Server) -> str:
        """Return the host's own address on the link to a server."""
        return self._build_addresses(server)[1]

    def disconnect(self, servers: Iterable[Server] = Server) -> None:
        """Set the links to these servers down: packets are lost, and neither end gets an error."""
        for server in servers:
            _run("ip", "link", "set", self._name_near_end(server), "down")

    def reconnect(self, servers: Iterable[Server] = Server) -> None:
        """Set the links to these servers up again."""
        for server in servers:
            _run("ip", "link", "set", self._name_near_end(server), "up")

    def limit_rate(self, kilobits: int) -> None:
        """Limit each link to `kilobits` per second in each direction; drop packets that wait for 2 s."""
        for server in Server:
            limit = ("root", "tbf", "rate", f"{kilobits}kbit", *_SLOW_OPTIONS)
            _run("tc", "qdisc", "replace", "dev", self._name_near_end(server), *limit)
            self._run("tc", "qdisc", "replace", "dev", _name_far_end(server), *limit)

    def remove_rate_limit(self) -> None:
        """Remove the limit of `limit_rate`."""
        for server in Server:
            _run("tc", "qdisc", "del", "dev", self._name_near_end(server), "root")
            self._run("tc", "qdisc", "del", "dev", _name_far_end(server), "root")

    def _is_named(self) -> bool:
        pid = str(self._holder.pid)
        if not Path(f"/proc/{pid}/ns/net").exists():
            return False
        found = subprocess.run(
            ["nsenter", "--target", pid, "--uts", "--", "hostname"], capture_output=True, text=True, check=False
        )
        return found.stdout.strip() == self.name

    def _add_link(self, server: Server) -> None:
        near_end, far_end = self._name_near_end(server), _name_far_end(server)
        near, far = self._build_addresses(server)
        _run("ip", "link", "add", near_end, "type", "veth", "peer", "name", far_end)
        _run("ip", "link", "set", far_end, "netns", str(self._holder.pid))
        _run("ip", "address", "add", f"{near}/30", "dev", near_end)
        _run("ip", "link", "set", near_end, "up")
        self._run("ip", "address", "add", f"{far}/30", "dev", far_end)
        self._run("ip", "link", "set", far_end, "up")
        self._run("ip", "route", "add", f"{server.address}/32", "via", near, "dev", far_end)

    def _build_addresses(self, server: Server) -> tuple[str, str]:
        """Return the addresses of both ends of a link, that of the host last."""
        return f"10.77.{self._number}.{4 * server + 1}", f"10.77.{self._number}.{4 * server + 2}"

    def _name_near_end(self, server: Server) -> str:
        return f"h{self._number}-{server.name.lower()}"

    def _run(self, *command: str) -> None:
        _run(*self.build_command(command))


class HostNetwork(StartAndStop):
    """Hosts, and addresses of the servers in the namespace of this program."""

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


def _name_far_end(server: Server) -> str:
    """Return the name of a link at the host's end."""
    return server.name.lower()


def _run(*command: str) -> None:
    """Run a command.

    Raises:
        RuntimeError: the command failed; the message has its error output.
    """
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {found.stderr.strip()}")
