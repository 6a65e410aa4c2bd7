"""`make up` for real: every process, killed and brought back, and nothing left behind."""

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
_NAMES = {
    "postgres": "/bin/postgres",
    "valkey": "valkey-server",
    "web": "gunicorn",
    "worker-1": "celery",
    "scheduler": "scheduler",
    "simulated": "toolbench.providers.simulated",
    "gateway": "toolbench.gateway",
}


def _free_port() -> int:
    """Below those that the system gives to connections, so that none has it when what was stopped starts again."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Up:
    """A running `make up` without the local model, its data in a folder with a blank in its name."""

    def __init__(self, folder: Path) -> None:
        self.var = folder / "my var"
        self.port = _free_port()
        self.environment = {**os.environ, "TOOLBENCH_VAR": str(self.var), "PORT": str(self.port), "LOCAL_MODEL": "0"}
        self.environment["TOOLBENCH_SILENT_SECONDS"] = "20"
        self.environment["TOOLBENCH_STARTED_AT"] = str(time.time() - 5000)  # packages were installed for so long
        for name in ("DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "HOST"):
            self.environment.pop(name, None)
        self._out = folder / "out"
        self.process = self.start()

    @property
    def said(self) -> str:
        return self._out.read_text()

    def start(self) -> subprocess.Popen[bytes]:
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(_UP, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        self.wait_until(lambda: "simulated is ready" in self.said or self.process.poll() is not None)
        assert self.process.poll() is None, self.said
        return self.process

    def run(self, verb: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolbench.running", verb]
        environment = {**self.environment, **more}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def children(self) -> dict[str, int]:
        """Number of every living child, by name."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        lines = {int(pid): _command(int(pid)) for pid in pids}
        return {
            name: pid
            for name, mark in _NAMES.items()
            for pid, line in lines.items()
            if mark in line and "confine.py" not in line
        }

    def beating(self) -> set[int]:
        """Numbers of the processes that have shown a sign of life."""
        state = read_state(Paths(self.var).state)
        return set(read_silent_seconds(state.environment["DATABASE_URL"]) or ()) if state else set()

    def wait_until(self, done: Callable[[], bool]) -> None:
        wait_until(done, every=0.1, seconds=_PATIENCE_SECONDS, describe=lambda: self.said)

    def stop(self) -> None:
        """In order if it can, so that its folder of sockets goes too."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_PATIENCE_SECONDS)
        assert self.nothing_is_left()

    def nothing_is_left(self) -> bool:
        """Waits until no process of it lives; each holds the lock for as long as it does."""
        lock = Lock(self.var / "children.lock")
        taken = lock.acquire(seconds=_PATIENCE_SECONDS)
        lock.release()
        return taken


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all tests of this file: each leaves it running."""
    running = Up(tmp_path_factory.mktemp("up"))
    yield running
    running.stop()


def _lives(pid: int) -> bool:
    """Whether there is such a process, a dead one that nobody buried aside."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _command(pid: int) -> str:
    """Its command line; "" when it has gone meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _follow(link: str) -> str:
    """The address at which a browser with this link ends."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    with urllib.request.build_opener(cookies).open(link) as answer:
        return str(answer.url)


def test_the_printed_link_leads_to_the_first_page(up: Up) -> None:
    link = re.search(r"http\S+/sign-in/\S+", up.said)

    assert link is not None
    assert _follow(link[0]) == f"http://127.0.0.1:{up.port}/"


def test_up_counts_from_the_start_of_the_command(up: Up) -> None:
    found = re.search(r"It took (\d+) s from the start of the command", up.said)

    assert found is not None
    assert int(found[1]) >= 5000


def test_another_link_can_be_had_while_it_runs(up: Up) -> None:
    printed = up.run("link")

    assert _follow(printed.stdout.strip()) == f"http://127.0.0.1:{up.port}/"


def test_a_second_one_at_the_same_time_gets_one_sentence(up: Up) -> None:
    second = up.run("up")

    assert second.returncode == 1
    assert second.stderr == f"Toolbench runs already at http://127.0.0.1:{up.port}/: `make link` prints a link to it.\n"


def test_data_is_not_deleted_while_it_runs(up: Up) -> None:
    refused = up.run("reset", YES="1")

    assert refused.returncode == 1
    assert up.var.exists()


@pytest.mark.parametrize("name", _NAMES)
def test_a_child_killed_by_force_comes_back(up: Up, name: str) -> None:
    up.wait_until(lambda: name in up.children())
    killed = up.children()[name]

    os.kill(killed, signal.SIGKILL)

    up.wait_until(lambda: up.children().get(name, killed) != killed)
    assert f"{name} ended (killed by signal 9)" in up.said


def test_a_worker_that_is_alive_and_deaf_is_replaced(up: Up) -> None:
    up.wait_until(lambda: up.children().get("worker-1") in up.beating())  # until then it is starting
    frozen = up.children()["worker-1"]

    os.kill(frozen, signal.SIGSTOP)

    up.wait_until(lambda: up.children().get("worker-1", frozen) != frozen)
    assert "worker-1 shows no sign of life" in up.said


def test_frozen_simulated_server_is_replaced(up: Up) -> None:
    up.wait_until(lambda: "simulated" in up.children())
    frozen, ready = up.children()["simulated"], up.said.count("simulated is ready")

    os.kill(frozen, signal.SIGSTOP)

    up.wait_until(lambda: up.children().get("simulated", frozen) != frozen)
    assert "simulated shows no sign of life" in up.said
    up.wait_until(lambda: up.said.count("simulated is ready") > ready)


def test_the_page_answers_after_all_that(up: Up) -> None:
    up.wait_until(lambda: up.run("link").returncode == 0)

    assert _follow(up.run("link").stdout.strip()) == f"http://127.0.0.1:{up.port}/"


def test_killed_supervisor_leaves_no_process_and_next_start_keeps_data(up: Up) -> None:
    unused = up.run("link").stdout.strip()
    children = up.children()

    up.process.kill()
    up.process.wait()

    assert up.nothing_is_left()
    assert [name for name, pid in children.items() if _lives(pid)] == []
    up.start()
    assert _follow(unused) == f"http://127.0.0.1:{up.port}/"


def test_ctrl_c_stops_everything_and_its_data_can_then_be_deleted(up: Up) -> None:
    up.process.send_signal(signal.SIGINT)

    assert up.process.wait(_PATIENCE_SECONDS) == 0
    assert up.nothing_is_left()
    assert up.run("link").returncode == 1
    assert up.run("reset", YES="1").returncode == 0
    assert not up.var.exists()
    up.start()


def test_a_port_in_use_gets_one_sentence(up: Up, tmp_path: Path) -> None:
    refused = up.run("up", TOOLBENCH_VAR=str(tmp_path))

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert f"127.0.0.1:{up.port} cannot be used" in refused.stderr


def test_unreachable_database_gets_one_sentence_with_its_address(up: Up, tmp_path: Path) -> None:
    elsewhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}

    refused = up.run("up", TOOLBENCH_VAR=str(tmp_path), PORT=str(_free_port()), **elsewhere)

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "127.0.0.1:1/none" in refused.stderr
    assert "psycopg" not in refused.stderr


def test_nothing_is_joined_that_does_not_run(up: Up, tmp_path: Path) -> None:
    refused = up.run("link", TOOLBENCH_VAR=str(tmp_path))

    assert refused.stderr == (
        "Toolbench does not run here: start it with `make up`, or set DATABASE_URL and REDIS_URL.\n"
    )
