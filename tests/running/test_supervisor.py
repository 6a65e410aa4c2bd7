"""What the supervisor does with children that end, fail or fall silent."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.paths import Lock
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.silence import GROWTH_FACTOR, MAX_START_SECONDS
from toolbench.running.supervisor import Supervisor

_PATIENCE_SECONDS = 20
LIMIT = 60.0


class Watched:
    """A supervisor of small Python children, what it said, and a clock that `ahead` moves on by hand."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.folder = folder
        self.ahead = 0.0
        self.lock = Lock(folder / "lock")
        self.supervisor = Supervisor(
            folder, self.lock.handle, print_message=self.said.append, max_silent_seconds=LIMIT, clock=self.clock
        )

    def clock(self) -> float:
        return time.monotonic() + self.ahead

    def add(self, name: str, code: str, **more: Any) -> ChildProcess:
        return self.supervisor.add(ChildSpec(name, [sys.executable, "-c", code], dict(os.environ), self.folder, **more))

    def restart_silent(self, silent: dict[int, float] | None, *, after: float) -> None:
        """Look at the signs of life `after` so many seconds; `silent` is by process number."""
        self.ahead += after
        self.supervisor.restart_silent(silent, self.clock())

    def tick_until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < until, self.said
            self.supervisor.tick()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.supervisor.stop(watched.supervisor.names, must_kill=lambda: True)


_SLEEPS = "import time; time.sleep(600)"
_COUNTS = "import pathlib, time; pathlib.Path('starts').open('a').write('x'); "


def _starts(watched: Watched) -> int:
    path = watched.folder / "starts"
    return len(path.read_text()) if path.exists() else 0


def test_a_killed_child_comes_back(watched: Watched) -> None:
    child = watched.add("worker", _COUNTS + _SLEEPS)
    watched.tick_until(lambda: _starts(watched) == 1)

    child.process.send_signal(signal.SIGKILL)

    watched.tick_until(lambda: _starts(watched) == 2)
    assert "worker ended (killed by signal 9)" in watched.said[0]


def test_a_child_that_fails_at_once_is_given_growing_pauses(watched: Watched) -> None:
    watched.add("worker", "raise SystemExit(1)")

    watched.tick_until(lambda: len(watched.said) == 2)

    assert "again in 1.0 s" in watched.said[0]
    assert "again in 2.0 s" in watched.said[1]


def test_a_child_that_cannot_start_is_left_out_with_its_own_sentence(watched: Watched) -> None:
    watched.add("local", "import sys; print('No such weights.', file=sys.stderr); sys.exit(3)", has_ready_line=True)

    watched.tick_until(lambda: bool(watched.said))

    assert watched.said == ["local is left out: No such weights."]


def test_a_dead_child_that_nobody_buried_is_not_taken_for_alive(watched: Watched) -> None:
    child = watched.add("worker", "pass")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert child.poll_exit_code() == 0


def test_a_silent_child_is_replaced_and_one_that_beats_is_not(watched: Watched) -> None:
    silent, beating = (
        watched.add("silent", _SLEEPS, has_heartbeats=True),
        watched.add("beating", _SLEEPS, has_heartbeats=True),
    )

    watched.restart_silent({silent.pid: 0.0, beating.pid: 0.0}, after=5)
    watched.restart_silent({silent.pid: LIMIT + 1, beating.pid: 0.0}, after=LIMIT + 1)

    assert silent.poll_exit_code() == -signal.SIGKILL
    assert beating.poll_exit_code() is None


def test_replace_silent_leaves_starting_child(watched: Watched) -> None:
    child = watched.add("worker", _SLEEPS, has_heartbeats=True)

    watched.restart_silent({}, after=MAX_START_SECONDS - 5)
    starting = child.poll_exit_code()
    watched.restart_silent({}, after=10)

    assert starting is None
    assert child.poll_exit_code() == -signal.SIGKILL


def test_replace_silent_ignores_row_of_older_process(watched: Watched) -> None:
    child = watched.add("worker", _SLEEPS, has_heartbeats=True)

    watched.restart_silent({child.pid: 3600.0}, after=5)
    watched.restart_silent({child.pid: 3600.0 + LIMIT}, after=LIMIT)
    watched.restart_silent({child.pid: 2 * LIMIT}, after=LIMIT - 10)  # seen ten seconds before its start

    assert child.poll_exit_code() is None


def test_replace_silent_gives_replaced_child_longer(watched: Watched) -> None:
    first = watched.add("worker", _COUNTS + _SLEEPS, has_heartbeats=True)
    watched.tick_until(lambda: _starts(watched) == 1)
    watched.restart_silent({first.pid: 0.0}, after=5)
    watched.restart_silent({first.pid: LIMIT + 1}, after=LIMIT + 1)
    watched.tick_until(lambda: _starts(watched) == 2)
    second = next(kept.child for kept in watched.supervisor._supervised)
    assert second is not None

    watched.restart_silent({second.pid: 0.0}, after=5)
    watched.restart_silent({second.pid: LIMIT + 1}, after=LIMIT + 1)

    assert first.poll_exit_code() == -signal.SIGKILL
    assert second.poll_exit_code() is None


def test_replace_silent_grows_once_for_a_child_slow_to_end(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    child = watched.add("worker", _SLEEPS, has_heartbeats=True)
    watched.restart_silent({child.pid: 0.0}, after=5)

    with monkeypatch.context() as patched:  # as in a system call that cannot be interrupted
        patched.setattr(ChildProcess, "kill", lambda child: None)
        for _ in range(3):
            watched.restart_silent({}, after=LIMIT * 3)

    assert watched.supervisor._supervised[0].heartbeat_timer.limit_factor == GROWTH_FACTOR
    assert len(watched.said) == 1


@pytest.mark.parametrize("scheduler_beats", [False, True])
def test_worker_is_excused_while_scheduler_starts(watched: Watched, scheduler_beats: bool) -> None:
    worker = watched.add("worker", _SLEEPS, has_heartbeats=True, depends_on=frozenset({"scheduler"}))
    scheduler = watched.add("scheduler", _SLEEPS, has_heartbeats=True)
    watched.restart_silent({worker.pid: 0.0}, after=5)

    signs = {scheduler.pid: 0.0} if scheduler_beats else {}
    for quiet in (LIMIT, 2 * LIMIT):
        watched.restart_silent({worker.pid: quiet, **signs}, after=LIMIT)
    watched.restart_silent({worker.pid: 2 * LIMIT + 5, **signs}, after=5)

    assert (worker.poll_exit_code() is None) is not scheduler_beats
    assert scheduler.poll_exit_code() is None


def test_database_that_is_away_silences_nobody(watched: Watched) -> None:
    child = watched.add("worker", _SLEEPS, has_heartbeats=True)
    watched.restart_silent({child.pid: 0.0}, after=5)

    watched.restart_silent(None, after=10 * LIMIT)
    watched.restart_silent({child.pid: 10 * LIMIT + 5}, after=5)

    assert child.poll_exit_code() is None


# Serves on its first start; later ones are starting for ever, so that nothing overtakes the withdrawal.
_SERVES = """
import http.server, pathlib, time
if pathlib.Path("starts").exists():
    time.sleep(600)
pathlib.Path("starts").write_text("x")
class Ok(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ok)
print('{"url": "http://127.0.0.1:%s"}' % server.server_address[1], flush=True)
server.serve_forever()
"""


@pytest.fixture
def register(watched: Watched) -> Iterator[ServiceRegistrar]:
    """A register that writes down what it tells: `simulated` or `simulated --gone`, one a line."""
    tells = "import sys, pathlib; pathlib.Path(sys.argv[1]).open('a').write(' '.join(sys.argv[2:]) + '\\n')"
    command = [sys.executable, "-c", tells, str(watched.folder / "told")]
    watched.supervisor.registrar = ServiceRegistrar(
        os.environ, watched.said.append, command=command, clock=watched.clock
    )
    yield watched.supervisor.registrar
    watched.supervisor.registrar.close()


def _told(watched: Watched) -> list[str]:
    path = watched.folder / "told"
    return path.read_text().splitlines() if path.exists() else []


def test_address_of_dead_child_is_withdrawn(watched: Watched, register: ServiceRegistrar) -> None:
    child = watched.add("simulated", _SERVES, has_ready_line=True)
    watched.tick_until(lambda: _told(watched) == ["simulated"])

    child.process.kill()

    watched.tick_until(lambda: len(_told(watched)) == 2)
    assert _told(watched)[1] == "simulated --gone"


def test_frozen_server_is_replaced_and_withdrawn(watched: Watched, register: ServiceRegistrar) -> None:
    child = watched.add("simulated", _SERVES, has_ready_line=True)
    kept = next(iter(watched.supervisor._supervised))
    watched.tick_until(lambda: _told(watched) == ["simulated"])
    watched.restart_silent({}, after=LIMIT / 2 - 5)
    watched.tick_until(lambda: kept.heartbeat_timer.compute_silent_seconds(watched.clock()) < 1)
    answering = child.poll_exit_code()

    child.process.send_signal(signal.SIGSTOP)
    watched.ahead += 10
    watched.supervisor.tick()
    watched.restart_silent({}, after=LIMIT + 5)

    assert answering is None
    assert child.poll_exit_code() == -signal.SIGKILL
    watched.tick_until(lambda: _told(watched)[1:] == ["simulated --gone"])


def test_supervisor_that_stood_still_replaces_no_server(watched: Watched, register: ServiceRegistrar) -> None:
    child = watched.add("simulated", _SERVES, has_ready_line=True)
    watched.tick_until(lambda: _told(watched) == ["simulated"])

    watched.ahead += 2 * LIMIT
    watched.supervisor.tick()
    watched.restart_silent({}, after=1)

    assert child.poll_exit_code() is None


def test_slow_start_of_a_server_keeps_its_grown_limit(watched: Watched, register: ServiceRegistrar) -> None:
    watched.add("simulated", _SLEEPS, has_ready_line=True)
    silence = next(kept.heartbeat_timer for kept in watched.supervisor._supervised)
    silence.extend_limits()

    for _ in range(6):
        watched.ahead += LIMIT / 3
        watched.supervisor.tick()

    assert (silence.limit_factor, silence.has_heartbeat) == (2.0, False)


def test_stopping_does_not_wait_for_one_that_does_not_listen(watched: Watched) -> None:
    deaf = "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = watched.add("deaf", deaf + "pathlib.Path('starts').write_text('x'); " + _SLEEPS)
    watched.tick_until(lambda: _starts(watched) == 1)

    watched.supervisor.stop({"deaf"}, must_kill=lambda: True)

    assert child.poll_exit_code() == -signal.SIGKILL


def test_a_child_holds_the_lock_that_says_that_something_is_left(watched: Watched) -> None:
    assert watched.lock.acquire()
    watched.add("worker", _SLEEPS)
    watched.lock.release()
    other = Lock(watched.folder / "lock")

    refused = not other.acquire()
    watched.supervisor.stop({"worker"})

    assert refused
    assert other.acquire()


def test_what_a_child_started_ends_with_it(watched: Watched) -> None:
    starts_another = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_COUNTS + _SLEEPS!r}]).wait()"
    child = watched.add("parent", starts_another)
    assert watched.lock.acquire()
    watched.tick_until(lambda: _starts(watched) == 1)

    child.process.kill()

    watched.tick_until(lambda: bool(watched.said))
    watched.lock.release()
    assert Lock(watched.folder / "lock").acquire(seconds=_PATIENCE_SECONDS)
