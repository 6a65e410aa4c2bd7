"""Telling the lab where a child serves never holds up whoever watches over the children."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.ready_lines import ServiceRegistrar

_PATIENCE_SECONDS = 20
_ANNOUNCES = """import time; print('{"url": "http://here"}', flush=True); time.sleep(600)"""
_COUNTS = "import pathlib; pathlib.Path({path!r}).open('a').write('x'); "


class Told:
    """A register with a child that announces, a clock that is moved by hand, and what was said."""

    def __init__(self, folder: Path, teller: str, announces: str = _ANNOUNCES) -> None:
        self.now = 0.0
        self.clock: Callable[[], float] = lambda: self.now
        self.said: list[str] = []
        self._starts = folder / "starts"
        command = [sys.executable, "-c", _COUNTS.format(path=str(self._starts)) + teller]
        self.registrar = ServiceRegistrar(os.environ, self.said.append, command=command, clock=lambda: self.clock())
        self.child = ChildProcess(
            ChildSpec("local", [sys.executable, "-c", announces], dict(os.environ), folder, has_ready_line=True), folder
        )
        self.registrar.watch(self.child)

    @property
    def starts(self) -> int:
        return len(self._starts.read_text()) if self._starts.exists() else 0

    def tick_until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < until, (self.starts, self.said)
            self.registrar.tick()

    def tick_often(self) -> None:
        for _ in range(200):
            self.registrar.tick()


@pytest.fixture
def told(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Told]:
    told = Told(tmp_path, request.param)
    yield told
    told.registrar.close()
    told.child.kill()
    told.child.close()


@pytest.mark.parametrize("told", ["import sys; assert 'http://here' in sys.stdin.read()"], indirect=True)
def test_a_child_that_is_ready_is_told_once(told: Told) -> None:
    told.tick_until(lambda: bool(told.said))
    told.now = 1000.0
    told.tick_often()
    assert (told.said, told.starts) == (["local is ready at http://here"], 1)


@pytest.mark.parametrize("told", ["import time; time.sleep(600)"], indirect=True)
def test_a_telling_that_hangs_is_ended_and_tried_again_later(told: Told) -> None:
    told.tick_until(lambda: told.starts == 1)
    told.tick_often()
    assert told.starts == 1
    told.now = 61.0
    told.tick_often()
    assert (told.starts, told.said) == (1, [])
    told.now = 62.0
    told.tick_until(lambda: told.starts == 2)


@pytest.mark.parametrize("told", ["raise SystemExit(1)"], indirect=True)
def test_a_telling_that_fails_is_tried_again_after_a_pause(told: Told) -> None:
    told.tick_until(lambda: told.starts == 1)
    told.tick_often()
    assert told.starts == 1
    told.clock = time.monotonic
    told.tick_until(lambda: told.starts == 3)
    assert told.said == []


@pytest.mark.parametrize("told", ["import time; time.sleep(600)"], indirect=True)
def test_closing_ends_a_telling_that_is_under_way(told: Told) -> None:
    told.tick_until(lambda: told.starts == 1)
    told.registrar.close()
    told.now = 1000.0
    told.tick_often()
    assert told.starts == 1


def test_withdraw_stops_telling_that_hangs_and_tells_the_end(tmp_path: Path) -> None:
    told = Told(tmp_path, "import sys, time; time.sleep(0 if '--gone' in sys.argv else 600)")
    told.tick_until(lambda: told.starts == 1)
    told.registrar.unregister("local")
    told.tick_until(lambda: told.starts == 2)
    told.tick_until(lambda: not told.registrar._registrations)
    told.child.kill()
    told.child.close()
    assert told.said == []


def test_answering_begins_with_the_ready_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        line = json.dumps({"url": f"http://127.0.0.1:{deaf.getsockname()[1]}"})
        waits = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        told = Told(tmp_path, "", f"{waits}print({line!r}, flush=True); time.sleep(600)")
        told.tick_often()
        starting = told.registrar.list_responsive_names()
        (tmp_path / "go").touch()
        told.tick_until(lambda: bool(told.said))
        ready, deaf_since = told.registrar.list_responsive_names(), told.registrar.list_responsive_names()
        told.registrar.close()
        told.child.kill()
        told.child.close()
    assert (starting, ready, deaf_since) == (set(), {"local"}, set())


def test_line_that_is_no_json_does_not_end_the_supervisor(tmp_path: Path) -> None:
    told = Told(tmp_path, "raise SystemExit(1)", "import time; print('ready', flush=True); time.sleep(600)")
    told.tick_until(lambda: told.starts == 1)
    told.tick_often()
    told.registrar.close()
    told.child.kill()
    told.child.close()
    assert told.said == []


def test_output_that_comes_with_the_ready_line_is_logged(tmp_path: Path) -> None:
    prints = "import time; print('{\"url\": \"http://here\"}\\nfirst'); print('second', flush=True); time.sleep(600)"
    told = Told(tmp_path, "", prints)
    told.tick_until(lambda: bool(told.said))
    told.tick_until(lambda: "second" in told.child.log.read_text())
    told.registrar.close()
    told.child.kill()
    told.child.close()
    assert told.child.log.read_text() == "first\nsecond\n"
