"""Supervision of children that end, fail or send no heartbeat."""

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolbench.running import child_process
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.paths import Lock
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.silence import GROWTH_FACTOR, MAX_START_SECONDS
from toolbench.running.supervisor import Supervisor

_PATIENCE_SECONDS = 20
LIMIT = 60.0


class SupervisorHarness:
    """A supervisor of small Python children, its messages, and a clock that the test moves by `clock_offset`."""

    def __init__(self, folder: Path) -> None:
        self.messages: list[str] = []
        self.folder = folder
        self.clock_offset = 0.0
        self.lock = Lock(folder / "lock")
        self.supervisor = Supervisor(
            folder, self.lock.handle, print_message=self.messages.append, max_silent_seconds=LIMIT, clock=self.clock
        )

    def clock(self) -> float:
        return time.monotonic() + self.clock_offset

    def add(self, name: str, code: str, **options: Any) -> ChildProcess:
        return self.supervisor.add(
            ChildSpec(name, [sys.executable, "-c", code], dict(os.environ), self.folder, **options)
        )

    def restart_silent(self, silent: dict[int, float] | None, *, after: float) -> None:
        """Check the heartbeats after `after` seconds; `silent` has the silent seconds by process id."""
        self.clock_offset += after
        self.supervisor.restart_silent(silent, self.clock())

    def tick_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < deadline, self.messages
            self.supervisor.tick()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[SupervisorHarness]:
    harness = SupervisorHarness(tmp_path)
    yield harness
    harness.supervisor.stop(harness.supervisor.names, must_kill=lambda: True)


_SLEEP = "import time; time.sleep(600)"
_COUNT_START = "import pathlib, time; pathlib.Path('starts').open('a').write('x'); "


def _count_starts(harness: SupervisorHarness) -> int:
    path = harness.folder / "starts"
    return len(path.read_text()) if path.exists() else 0


def test_supervisor_restarts_a_killed_child(harness: SupervisorHarness) -> None:
    child = harness.add("worker", _COUNT_START + _SLEEP)
    harness.tick_until(lambda: _count_starts(harness) == 1)

    child.process.send_signal(signal.SIGKILL)

    harness.tick_until(lambda: _count_starts(harness) == 2)
    assert "worker ended (killed by signal 9)" in harness.messages[0]


def test_supervisor_restarts_a_failing_child_after_growing_pauses(harness: SupervisorHarness) -> None:
    harness.add("worker", "raise SystemExit(1)")

    harness.tick_until(lambda: len(harness.messages) == 2)

    assert "again in 1.0 s" in harness.messages[0]
    assert "again in 2.0 s" in harness.messages[1]


def test_supervisor_leaves_out_a_child_that_cannot_start(harness: SupervisorHarness) -> None:
    harness.add("local", "import sys; print('No such weights.', file=sys.stderr); sys.exit(3)", has_ready_line=True)

    harness.tick_until(lambda: bool(harness.messages))

    assert harness.messages == ["local is left out: No such weights."]


def test_poll_exit_code_reaps_a_dead_child(harness: SupervisorHarness) -> None:
    child = harness.add("worker", "pass")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert child.poll_exit_code() == 0


def test_restart_silent_restarts_only_the_child_without_heartbeats(harness: SupervisorHarness) -> None:
    silent, healthy = (
        harness.add("silent", _SLEEP, has_heartbeats=True),
        harness.add("beating", _SLEEP, has_heartbeats=True),
    )

    harness.restart_silent({silent.pid: 0.0, healthy.pid: 0.0}, after=5)
    harness.restart_silent({silent.pid: LIMIT + 1, healthy.pid: 0.0}, after=LIMIT + 1)

    assert silent.poll_exit_code() == -signal.SIGKILL
    assert healthy.poll_exit_code() is None


def test_restart_silent_leaves_a_starting_child(harness: SupervisorHarness) -> None:
    child = harness.add("worker", _SLEEP, has_heartbeats=True)

    harness.restart_silent({}, after=MAX_START_SECONDS - 5)
    exit_code_before = child.poll_exit_code()
    harness.restart_silent({}, after=10)

    assert exit_code_before is None
    assert child.poll_exit_code() == -signal.SIGKILL


def test_restart_silent_ignores_a_row_of_an_older_process(harness: SupervisorHarness) -> None:
    child = harness.add("worker", _SLEEP, has_heartbeats=True)

    harness.restart_silent({child.pid: 3600.0}, after=5)
    harness.restart_silent({child.pid: 3600.0 + LIMIT}, after=LIMIT)
    harness.restart_silent({child.pid: 2 * LIMIT}, after=LIMIT - 10)  # a heartbeat ten seconds before its start

    assert child.poll_exit_code() is None


def test_restart_silent_extends_the_limit_of_a_restarted_child(harness: SupervisorHarness) -> None:
    first = harness.add("worker", _COUNT_START + _SLEEP, has_heartbeats=True)
    harness.tick_until(lambda: _count_starts(harness) == 1)
    harness.restart_silent({first.pid: 0.0}, after=5)
    harness.restart_silent({first.pid: LIMIT + 1}, after=LIMIT + 1)
    harness.tick_until(lambda: _count_starts(harness) == 2)
    second = next(supervised.child for supervised in harness.supervisor._supervised)
    assert second is not None

    harness.restart_silent({second.pid: 0.0}, after=5)
    harness.restart_silent({second.pid: LIMIT + 1}, after=LIMIT + 1)

    assert first.poll_exit_code() == -signal.SIGKILL
    assert second.poll_exit_code() is None


def test_restart_silent_extends_the_limit_once_for_one_restart(
    harness: SupervisorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = harness.add("worker", _SLEEP, has_heartbeats=True)
    harness.restart_silent({child.pid: 0.0}, after=5)

    with monkeypatch.context() as patched:  # like a process in an uninterruptible system call
        patched.setattr(ChildProcess, "kill", lambda child: None)
        for _ in range(3):
            harness.restart_silent({}, after=LIMIT * 3)

    assert harness.supervisor._supervised[0].heartbeat_timer.limit_factor == GROWTH_FACTOR
    assert len(harness.messages) == 1


@pytest.mark.parametrize("has_scheduler_heartbeat", [False, True])
def test_restart_silent_excuses_a_worker_while_the_scheduler_starts(
    harness: SupervisorHarness, has_scheduler_heartbeat: bool
) -> None:
    worker = harness.add("worker", _SLEEP, has_heartbeats=True, depends_on=frozenset({"scheduler"}))
    scheduler = harness.add("scheduler", _SLEEP, has_heartbeats=True)
    harness.restart_silent({worker.pid: 0.0}, after=5)

    heartbeats = {scheduler.pid: 0.0} if has_scheduler_heartbeat else {}
    for silent_seconds in (LIMIT, 2 * LIMIT):
        harness.restart_silent({worker.pid: silent_seconds, **heartbeats}, after=LIMIT)
    harness.restart_silent({worker.pid: 2 * LIMIT + 5, **heartbeats}, after=5)

    assert (worker.poll_exit_code() is None) is not has_scheduler_heartbeat
    assert scheduler.poll_exit_code() is None


def test_restart_silent_without_a_database_restarts_no_child(harness: SupervisorHarness) -> None:
    child = harness.add("worker", _SLEEP, has_heartbeats=True)
    harness.restart_silent({child.pid: 0.0}, after=5)

    harness.restart_silent(None, after=10 * LIMIT)
    harness.restart_silent({child.pid: 10 * LIMIT + 5}, after=5)

    assert child.poll_exit_code() is None


# Serves on its first start; later starts hang, so that no registration follows the withdrawal.
_SERVE = """
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
def registrar(harness: SupervisorHarness) -> Iterator[ServiceRegistrar]:
    """Give the supervisor a registrar that writes a line for each call: `simulated` or `simulated --gone`."""
    register_code = "import sys, pathlib; pathlib.Path(sys.argv[1]).open('a').write(' '.join(sys.argv[2:]) + '\\n')"
    command = [sys.executable, "-c", register_code, str(harness.folder / "told")]
    harness.supervisor.registrar = ServiceRegistrar(
        os.environ, harness.messages.append, command=command, clock=harness.clock
    )
    yield harness.supervisor.registrar
    harness.supervisor.registrar.close()


def _read_registrations(harness: SupervisorHarness) -> list[str]:
    path = harness.folder / "told"
    return path.read_text().splitlines() if path.exists() else []


def test_supervisor_unregisters_the_address_of_a_dead_child(
    harness: SupervisorHarness, registrar: ServiceRegistrar
) -> None:
    child = harness.add("simulated", _SERVE, has_ready_line=True)
    harness.tick_until(lambda: _read_registrations(harness) == ["simulated"])

    child.process.kill()

    harness.tick_until(lambda: len(_read_registrations(harness)) == 2)
    assert _read_registrations(harness)[1] == "simulated --gone"


def test_restart_silent_restarts_and_unregisters_a_frozen_server(
    harness: SupervisorHarness, registrar: ServiceRegistrar
) -> None:
    child = harness.add("simulated", _SERVE, has_ready_line=True)
    supervised = next(iter(harness.supervisor._supervised))
    harness.tick_until(lambda: _read_registrations(harness) == ["simulated"])
    harness.restart_silent({}, after=LIMIT / 2 - 5)
    harness.tick_until(lambda: supervised.heartbeat_timer.compute_silent_seconds(harness.clock()) < 1)
    exit_code_before = child.poll_exit_code()

    child.process.send_signal(signal.SIGSTOP)
    harness.clock_offset += 10
    harness.supervisor.tick()
    harness.restart_silent({}, after=LIMIT + 5)

    assert exit_code_before is None
    assert child.poll_exit_code() == -signal.SIGKILL
    harness.tick_until(lambda: _read_registrations(harness)[1:] == ["simulated --gone"])


def test_restart_silent_after_a_pause_of_the_supervisor_spares_servers(
    harness: SupervisorHarness, registrar: ServiceRegistrar
) -> None:
    child = harness.add("simulated", _SERVE, has_ready_line=True)
    harness.tick_until(lambda: _read_registrations(harness) == ["simulated"])

    harness.clock_offset += 2 * LIMIT
    harness.supervisor.tick()
    harness.restart_silent({}, after=1)

    assert child.poll_exit_code() is None


def test_restart_silent_keeps_the_extended_limit_of_a_starting_server(
    harness: SupervisorHarness, registrar: ServiceRegistrar
) -> None:
    harness.add("simulated", _SLEEP, has_ready_line=True)
    timer = next(supervised.heartbeat_timer for supervised in harness.supervisor._supervised)
    timer.extend_limits()

    for _ in range(6):
        harness.clock_offset += LIMIT / 3
        harness.supervisor.tick()

    assert (timer.limit_factor, timer.has_heartbeat) == (2.0, False)


def test_supervisor_stop_kills_a_child_that_ignores_sigterm(harness: SupervisorHarness) -> None:
    ignore_sigterm = "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = harness.add("deaf", ignore_sigterm + "pathlib.Path('starts').write_text('x'); " + _SLEEP)
    harness.tick_until(lambda: _count_starts(harness) == 1)

    harness.supervisor.stop({"deaf"}, must_kill=lambda: True)

    assert child.poll_exit_code() == -signal.SIGKILL


def test_supervisor_child_holds_the_lock(harness: SupervisorHarness) -> None:
    assert harness.lock.acquire()
    harness.add("worker", _SLEEP)
    harness.lock.release()
    other = Lock(harness.folder / "lock")

    refused = not other.acquire()
    harness.supervisor.stop({"worker"})

    assert refused
    assert other.acquire()


def test_supervisor_ends_what_a_killed_child_started(harness: SupervisorHarness) -> None:
    starts_another = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_COUNT_START + _SLEEP!r}]).wait()"
    )
    child = harness.add("parent", starts_another)
    assert harness.lock.acquire()
    harness.tick_until(lambda: _count_starts(harness) == 1)

    child.process.kill()

    harness.tick_until(lambda: bool(harness.messages))
    harness.lock.release()
    assert Lock(harness.folder / "lock").acquire(seconds=_PATIENCE_SECONDS)


def test_supervisor_restarts_a_child_whose_log_was_deleted(harness: SupervisorHarness) -> None:
    child = harness.add("worker", _COUNT_START + _SLEEP)
    harness.tick_until(lambda: _count_starts(harness) == 1)
    child.log.unlink()

    child.process.send_signal(signal.SIGKILL)

    harness.tick_until(lambda: _count_starts(harness) == 2)


def test_supervisor_repeats_a_start_that_the_system_refuses(harness: SupervisorHarness) -> None:
    folder = harness.folder / "work"
    folder.mkdir()
    command = [sys.executable, "-c", "import pathlib; pathlib.Path('started').touch()"]
    harness.supervisor.add(ChildSpec("worker", command, dict(os.environ), folder))
    harness.tick_until(lambda: len(harness.messages) == 1)
    shutil.rmtree(folder)

    harness.tick_until(lambda: len(harness.messages) == 2)
    folder.mkdir()

    assert "worker cannot be started" in harness.messages[1]
    assert "again in 2.0 s" in harness.messages[1]
    harness.tick_until((folder / "started").exists)


def test_read_last_log_line_reads_the_end_of_a_long_log(harness: SupervisorHarness) -> None:
    child = harness.add("worker", "print('x' * 100_000); print('The end.'); print()")
    harness.tick_until(lambda: bool(harness.messages))

    assert child.read_last_log_line() == "The end."


def test_supervisor_empties_a_long_log_of_a_running_child(
    harness: SupervisorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_MAX_RUNNING_LOG_BYTES", 100)
    print_twice = (
        "import pathlib, time\nprint('x' * 200, flush=True)\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\nprint('The end.', flush=True); time.sleep(600)"
    )
    child = harness.add("worker", print_twice)
    harness.tick_until(lambda: child.log.stat().st_size > 100)

    harness.supervisor.limit_logs()
    (harness.folder / "go").touch()

    harness.tick_until(lambda: child.log.read_text() == "The end.\n")
    assert child.log.with_suffix(".log.1").read_text() == "x" * 200 + "\n"


def test_limit_log_empties_the_log_although_the_disk_is_full(
    harness: SupervisorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_disk(source: Path, copy: Path) -> None:
        copy.write_bytes(source.read_bytes()[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(child_process, "_MAX_RUNNING_LOG_BYTES", 100)
    monkeypatch.setattr(shutil, "copyfile", fill_disk)
    child = harness.add("worker", "print('x' * 200, flush=True)\n" + _SLEEP)
    harness.tick_until(lambda: child.log.stat().st_size > 100)

    child.limit_log()

    assert child.log.stat().st_size == 0
    assert not child.log.with_suffix(".log.1").exists()
