"""`make up` with real processes: start, restarts, one-sentence errors and a stop without leftovers."""

import http.cookiejar
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.wait import wait_until
from toolbench.installation import ROOT
from toolbench.running.heartbeats import read_silent_seconds
from toolbench.running.paths import Lock, Paths, read_state

_PATIENCE_SECONDS = 180
_UP = [sys.executable, "-m", "toolbench.running", "up"]
_COMMAND_MARK_BY_NAME = {
    "postgres": "/bin/postgres",
    "valkey": "valkey-server",
    "web": "gunicorn",
    "worker-1": "celery",
    "scheduler": "scheduler",
    "simulated": "toolbench.providers.simulated",
    "gateway": "toolbench.gateway",
}


def _find_free_port() -> int:
    """Return a free port below the ephemeral ones, so that no connection takes it before a restart."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Up:
    """A running `make up` without the local model, with data in a folder whose name has a blank."""

    def __init__(self, folder: Path) -> None:
        self.var = folder / "my var"
        self.port = _find_free_port()
        self.environment = {**os.environ, "TOOLBENCH_VAR": str(self.var), "PORT": str(self.port), "LOCAL_MODEL": "0"}
        self.environment["TOOLBENCH_SILENT_SECONDS"] = "20"
        # As if the installation of packages took 5,000 seconds.
        self.environment["TOOLBENCH_STARTED_AT"] = str(time.time() - 5000)
        for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "HOST"):
            self.environment.pop(name, None)
        self._out = folder / "out"
        self.process = self.start()

    @property
    def output(self) -> str:
        return self._out.read_text()

    def start(self) -> subprocess.Popen[bytes]:
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(_UP, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        self.wait_until(lambda: "simulated is ready" in self.output or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        return self.process

    def run(self, verb: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolbench.running", verb]
        environment = {**self.environment, **variables}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def list_children(self) -> dict[str, int]:
        """Return the process ids of the living children by name."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        lines = {int(pid): _read_command_line(int(pid)) for pid in pids}
        # confine.py is not yet the child: it starts the command in its arguments.
        return {
            name: pid
            for name, mark in _COMMAND_MARK_BY_NAME.items()
            for pid, line in lines.items()
            if mark in line and "confine.py" not in line
        }

    def list_heartbeat_pids(self) -> set[int]:
        """Return the ids of the processes that have sent a heartbeat."""
        state = read_state(Paths(self.var).state)
        return set(read_silent_seconds(state.environment["DATABASE_URL"]) or ()) if state else set()

    def wait_until(self, done: Callable[[], bool]) -> None:
        wait_until(done, every=0.1, seconds=_PATIENCE_SECONDS, describe=lambda: self.output)

    def stop(self) -> None:
        """Stop with SIGINT and wait for the end: a killed instance would leave its folder of sockets."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_PATIENCE_SECONDS)
        assert self.wait_for_last_process()

    def wait_for_last_process(self) -> bool:
        """Wait for the lock that each process of the instance holds while it lives; return whether it became free."""
        lock = Lock(self.var / "children.lock")
        is_free = lock.acquire(seconds=_PATIENCE_SECONDS)
        lock.release()
        return is_free


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Start one instance for all tests of this file; each test leaves it running."""
    instance = Up(tmp_path_factory.mktemp("up"))
    yield instance
    instance.stop()


def _is_alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _read_command_line(pid: int) -> str:
    """Return the command line of a process, or "" if it no longer exists."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _open_link(link: str) -> str:
    """Return the final URL for a browser that opens the link."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    with urllib.request.build_opener(cookies).open(link) as answer:
        return str(answer.url)


def test_up_prints_a_link_to_the_home_page(up: Up) -> None:
    link = re.search(r"http\S+/sign-in/\S+", up.output)

    assert link is not None
    assert _open_link(link[0]) == f"http://127.0.0.1:{up.port}/"


def test_up_reports_the_time_since_the_start_of_the_command(up: Up) -> None:
    found = re.search(r"It took (\d+) s from the start of the command", up.output)

    assert found is not None
    assert int(found[1]) >= 5000


def test_link_prints_a_new_link_to_a_running_instance(up: Up) -> None:
    printed = up.run("link")

    assert _open_link(printed.stdout.strip()) == f"http://127.0.0.1:{up.port}/"


def test_up_beside_a_running_instance_is_refused_in_one_sentence(up: Up) -> None:
    result = up.run("up")

    assert result.returncode == 1
    assert result.stderr == f"Toolbench runs already at http://127.0.0.1:{up.port}/: `make link` prints a link to it.\n"


def test_reset_of_a_running_instance_is_refused(up: Up) -> None:
    result = up.run("reset", YES="1")

    assert result.returncode == 1
    assert up.var.exists()


@pytest.mark.parametrize("name", _COMMAND_MARK_BY_NAME)
def test_up_restarts_a_killed_child(up: Up, name: str) -> None:
    up.wait_until(lambda: name in up.list_children())
    killed_pid = up.list_children()[name]

    os.kill(killed_pid, signal.SIGKILL)

    up.wait_until(lambda: up.list_children().get(name, killed_pid) != killed_pid)
    assert f"{name} ended (killed by signal 9)" in up.output


def test_up_restarts_a_frozen_worker(up: Up) -> None:
    # The limit for silence counts only after the first heartbeat; before it, a start may take 600 s.
    up.wait_until(lambda: up.list_children().get("worker-1") in up.list_heartbeat_pids())
    frozen_pid = up.list_children()["worker-1"]

    os.kill(frozen_pid, signal.SIGSTOP)

    up.wait_until(lambda: up.list_children().get("worker-1", frozen_pid) != frozen_pid)
    assert "worker-1 shows no sign of life" in up.output


def test_up_restarts_a_frozen_simulated_server(up: Up) -> None:
    up.wait_until(lambda: "simulated" in up.list_children())
    frozen_pid, ready_count = up.list_children()["simulated"], up.output.count("simulated is ready")

    os.kill(frozen_pid, signal.SIGSTOP)

    up.wait_until(lambda: up.list_children().get("simulated", frozen_pid) != frozen_pid)
    assert "simulated shows no sign of life" in up.output
    up.wait_until(lambda: up.output.count("simulated is ready") > ready_count)


def test_up_serves_pages_after_the_restarts(up: Up) -> None:
    up.wait_until(lambda: up.run("link").returncode == 0)

    assert _open_link(up.run("link").stdout.strip()) == f"http://127.0.0.1:{up.port}/"


def test_killed_up_leaves_no_process_and_restarts_with_its_data(up: Up) -> None:
    unused_link = up.run("link").stdout.strip()
    children = up.list_children()

    up.process.kill()
    up.process.wait()

    assert up.wait_for_last_process()
    assert [name for name, pid in children.items() if _is_alive(pid)] == []
    up.start()
    assert _open_link(unused_link) == f"http://127.0.0.1:{up.port}/"


def test_up_stops_every_process_on_ctrl_c_and_reset_deletes_the_data(up: Up) -> None:
    up.process.send_signal(signal.SIGINT)

    assert up.process.wait(_PATIENCE_SECONDS) == 0
    assert up.wait_for_last_process()
    assert up.run("link").returncode == 1
    assert up.run("reset", YES="1").returncode == 0
    assert not up.var.exists()
    up.start()


def test_up_on_a_used_port_is_refused_in_one_sentence(up: Up, tmp_path: Path) -> None:
    result = up.run("up", TOOLBENCH_VAR=str(tmp_path))

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert f"127.0.0.1:{up.port} cannot be used" in result.stderr


def test_up_with_an_unreachable_database_is_refused_in_one_sentence(up: Up, tmp_path: Path) -> None:
    unreachable = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}

    result = up.run("up", TOOLBENCH_VAR=str(tmp_path), PORT=str(_find_free_port()), **unreachable)

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "127.0.0.1:1/none" in result.stderr
    assert "psycopg" not in result.stderr


def test_link_without_an_instance_says_how_to_start_one(up: Up, tmp_path: Path) -> None:
    result = up.run("link", TOOLBENCH_VAR=str(tmp_path))

    assert result.stderr == (
        "Toolbench does not run here: start it with `make up`, or set DATABASE_URL and REDIS_URL.\n"
    )
