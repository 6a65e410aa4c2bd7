"""Registration of local servers by their ready lines, which never blocks the supervisor."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.ready_lines import ServiceRegistrar

_PATIENCE_SECONDS = 20
_PRINT_READY_LINE = """import time; print('{"url": "http://here"}', flush=True); time.sleep(600)"""
_COUNT_START = "import pathlib; pathlib.Path({path!r}).open('a').write('x'); "


class RegistrarHarness:
    """A registrar with one child, a clock set by the test, and the printed messages."""

    def __init__(self, folder: Path, register_code: str, child_code: str = _PRINT_READY_LINE) -> None:
        self.now = 0.0
        self.clock: Callable[[], float] = lambda: self.now
        self.messages: list[str] = []
        self._starts = folder / "starts"
        command = [sys.executable, "-c", _COUNT_START.format(path=str(self._starts)) + register_code]
        self.registrar = ServiceRegistrar(os.environ, self.messages.append, command=command, clock=lambda: self.clock())
        self.child = ChildProcess(
            ChildSpec("local", [sys.executable, "-c", child_code], dict(os.environ), folder, has_ready_line=True),
            folder,
        )
        self.registrar.watch(self.child)

    @property
    def starts(self) -> int:
        return len(self._starts.read_text()) if self._starts.exists() else 0

    def tick_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < deadline, (self.starts, self.messages)
            self.registrar.tick()

    def tick_often(self) -> None:
        for _ in range(200):
            self.registrar.tick()


@pytest.fixture
def harness(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RegistrarHarness]:
    harness = RegistrarHarness(tmp_path, request.param)
    yield harness
    harness.registrar.close()
    harness.child.kill()
    harness.child.close()


@pytest.mark.parametrize("harness", ["import sys; assert 'http://here' in sys.stdin.read()"], indirect=True)
def test_service_registrar_registers_a_ready_child_once(harness: RegistrarHarness) -> None:
    harness.tick_until(lambda: bool(harness.messages))
    harness.now = 1000.0
    harness.tick_often()
    assert (harness.messages, harness.starts) == (["local is ready at http://here"], 1)


@pytest.mark.parametrize("harness", ["import time; time.sleep(600)"], indirect=True)
def test_service_registrar_ends_and_repeats_a_hanging_registration(harness: RegistrarHarness) -> None:
    harness.tick_until(lambda: harness.starts == 1)
    harness.tick_often()
    assert harness.starts == 1
    harness.now = 61.0
    harness.tick_often()
    assert (harness.starts, harness.messages) == (1, [])
    harness.now = 62.0
    harness.tick_until(lambda: harness.starts == 2)


@pytest.mark.parametrize("harness", ["raise SystemExit(1)"], indirect=True)
def test_service_registrar_repeats_a_failed_registration_after_a_pause(harness: RegistrarHarness) -> None:
    harness.tick_until(lambda: harness.starts == 1)
    harness.tick_often()
    assert harness.starts == 1
    harness.clock = time.monotonic
    harness.tick_until(lambda: harness.starts == 3)
    assert harness.messages == []


@pytest.mark.parametrize("harness", ["pass"], indirect=True)
def test_service_registrar_repeats_a_registration_that_cannot_be_started(
    harness: RegistrarHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[object] = []

    def refuse(command: object, **options: object) -> None:
        attempts.append(command)
        raise BlockingIOError("no more processes")

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", refuse)
        harness.tick_until(lambda: len(attempts) == 1)
        harness.tick_often()
    harness.now = 1.0
    harness.tick_until(lambda: bool(harness.messages))

    assert (len(attempts), harness.starts) == (1, 1)


@pytest.mark.parametrize("harness", ["import time; time.sleep(600)"], indirect=True)
def test_service_registrar_close_ends_a_running_registration(harness: RegistrarHarness) -> None:
    harness.tick_until(lambda: harness.starts == 1)
    harness.registrar.close()
    harness.now = 1000.0
    harness.tick_often()
    assert harness.starts == 1


def test_service_registrar_unregister_stops_a_hanging_registration(tmp_path: Path) -> None:
    harness = RegistrarHarness(tmp_path, "import sys, time; time.sleep(0 if '--gone' in sys.argv else 600)")
    harness.tick_until(lambda: harness.starts == 1)
    harness.registrar.unregister("local")
    harness.tick_until(lambda: harness.starts == 2)
    harness.tick_until(lambda: not harness.registrar._registrations)
    harness.child.kill()
    harness.child.close()
    assert harness.messages == []


def test_service_registrar_responsive_names_need_ready_line_and_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_socket:
        line = json.dumps({"url": f"http://127.0.0.1:{silent_socket.getsockname()[1]}"})
        wait_code = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        harness = RegistrarHarness(tmp_path, "", f"{wait_code}print({line!r}, flush=True); time.sleep(600)")
        harness.tick_often()
        starting = harness.registrar.list_responsive_names()
        (tmp_path / "go").touch()
        harness.tick_until(lambda: bool(harness.messages))
        ready, after_silence = harness.registrar.list_responsive_names(), harness.registrar.list_responsive_names()
        harness.registrar.close()
        harness.child.kill()
        harness.child.close()
    assert (starting, ready, after_silence) == (set(), {"local"}, set())


def test_service_registrar_survives_a_ready_line_that_is_no_json(tmp_path: Path) -> None:
    harness = RegistrarHarness(
        tmp_path, "raise SystemExit(1)", "import time; print('ready', flush=True); time.sleep(600)"
    )
    harness.tick_until(lambda: harness.starts == 1)
    harness.tick_often()
    harness.registrar.close()
    harness.child.kill()
    harness.child.close()
    assert harness.messages == []


def test_service_registrar_logs_output_after_the_ready_line(tmp_path: Path) -> None:
    child_code = (
        "import time; print('{\"url\": \"http://here\"}\\nfirst'); print('second', flush=True); time.sleep(600)"
    )
    harness = RegistrarHarness(tmp_path, "", child_code)
    harness.tick_until(lambda: bool(harness.messages))
    harness.tick_until(lambda: "second" in harness.child.log.read_text())
    harness.registrar.close()
    harness.child.kill()
    harness.child.close()
    assert harness.child.log.read_text() == "first\nsecond\n"
