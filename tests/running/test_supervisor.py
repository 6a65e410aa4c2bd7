"""What the supervisor does with children that end, fail or fall silent."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolbench.running.children import Child, Spec
from toolbench.running.places import Lock
from toolbench.running.supervisor import Supervisor

_PATIENCE_SECONDS = 20


class Watched:
    """A supervisor of small Python children, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.folder = folder
        self.lock = Lock(folder / "lock")
        self.supervisor = Supervisor(folder, self.lock.handle, say=self.said.append, silent_limit=0.0)

    def add(self, name: str, code: str, *, beats: bool = False, announces: bool = False) -> Child:
        command = [sys.executable, "-c", code]
        spec = Spec(name, command, dict(os.environ), self.folder, beats=beats, announces=announces)
        return self.supervisor.add(spec)

    def tick_until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < until, self.said
            self.supervisor.tick()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.supervisor.stop(watched.supervisor.names, hurry=lambda: True)


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
    watched.add("local", "import sys; print('No such weights.', file=sys.stderr); sys.exit(3)", announces=True)

    watched.tick_until(lambda: bool(watched.said))

    assert watched.said == ["local is left out: No such weights."]


def test_a_dead_child_that_nobody_buried_is_not_taken_for_alive(watched: Watched) -> None:
    child = watched.add("worker", "pass")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert child.exit_code() == 0


def test_a_silent_child_is_replaced_and_one_that_beats_is_not(watched: Watched) -> None:
    silent, beating = watched.add("silent", _SLEEPS, beats=True), watched.add("beating", _SLEEPS, beats=True)

    watched.supervisor.replace_silent({silent.pid: 99.0, beating.pid: 0.0})

    assert silent.exit_code() == -signal.SIGKILL
    assert beating.exit_code() is None


def test_stopping_does_not_wait_for_one_that_does_not_listen(watched: Watched) -> None:
    deaf = "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = watched.add("deaf", deaf + "pathlib.Path('starts').write_text('x'); " + _SLEEPS)
    watched.tick_until(lambda: _starts(watched) == 1)

    watched.supervisor.stop({"deaf"}, hurry=lambda: True)

    assert child.exit_code() == -signal.SIGKILL


def test_a_child_holds_the_lock_that_says_that_something_is_left(watched: Watched) -> None:
    assert watched.lock.take()
    watched.add("worker", _SLEEPS)
    watched.lock.release()
    other = Lock(watched.folder / "lock")

    refused = not other.take()
    watched.supervisor.stop({"worker"})

    assert refused
    assert other.take()


def test_what_a_child_started_ends_with_it(watched: Watched) -> None:
    starts_another = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_COUNTS + _SLEEPS!r}]).wait()"
    child = watched.add("parent", starts_another)
    assert watched.lock.take()
    watched.tick_until(lambda: _starts(watched) == 1)

    child.process.kill()

    watched.tick_until(lambda: bool(watched.said))
    watched.lock.release()
    assert Lock(watched.folder / "lock").take(seconds=_PATIENCE_SECONDS)
