"""The start time that `make up` reports, and the end of its preparation after a stop signal."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolbench.installation import ROOT
from toolbench.running import startup
from toolbench.running.errors import RunnerError
from toolbench.running.options import StartOptions
from toolbench.running.paths import Lock, Paths
from toolbench.running.startup import compute_elapsed_seconds


@pytest.mark.parametrize(
    ("started_at", "seconds"),
    [("900", 100.0), ("", 0.0), ("soon", 0.0), ("nan", 0.0), ("2000", 0.0), ("-99999999", 0.0)],
)
def test_compute_elapsed_seconds_counts_from_the_start_of_the_command(started_at: str, seconds: float) -> None:
    assert compute_elapsed_seconds({"TOOLBENCH_STARTED_AT": started_at}, 1000.0) == seconds


def test_compute_elapsed_seconds_without_the_variable_is_zero() -> None:
    assert compute_elapsed_seconds({}, 1000.0) == 0.0


def test_make_up_passes_on_its_start_time(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho began $TOOLBENCH_STARTED_AT\n")
    python.chmod(0o755)
    before = int(time.time())
    command = [
        "make",
        "--no-print-directory",
        "up",
        f"BIN={tmp_path}",
        "PYTHON=true",
    ]  # installs and starts nothing
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert int(printed.removeprefix("began ")) >= before


def test_startup_stops_its_preparation_after_a_stop_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(tmp_path)
    paths.create()
    monkeypatch.setattr(
        startup, "build_manage_command", lambda name: [sys.executable, "-c", "import time; time.sleep(60)"]
    )
    run = startup.Startup(StartOptions(), paths)
    assert run._children_lock.acquire()
    run._stop_requests = 1

    with pytest.raises(startup.StopRequested):
        run._prepare(os.environ)

    run._children_lock.release()
    lock = Lock(tmp_path / "children.lock")  # a child that still ran would hold the lock, which it inherits
    assert lock.acquire()
    lock.release()


def test_startup_that_fails_removes_its_folder_of_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def fail(run: startup.Startup, sockets: Path) -> str:
        folders.append(sockets)
        raise RunnerError("no disk")

    monkeypatch.setattr(startup.Startup, "_start_postgres", fail)
    paths = Paths(tmp_path)
    paths.create()
    run = startup.Startup(StartOptions(), paths)

    with socket.socket() as web_socket, pytest.raises(RunnerError):
        run._start(web_socket)
    run._stop()

    assert [folder.exists() for folder in folders] == [False]


@pytest.mark.parametrize(("public_url", "is_warned"), [("", True), ("https://bench.example.org", False)])
def test_startup_warns_only_of_a_site_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public_url: str, is_warned: bool
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(startup, "print_line", lines.append)
    run = startup.Startup(StartOptions(host="0.0.0.0", public_url=public_url), Paths(tmp_path))

    run._print_greeting("http://127.0.0.1:8000/sign-in/x")

    assert any("ALLOWED_HOSTS" in line for line in lines) is is_warned


@pytest.mark.parametrize("is_ignored", [False, True])
def test_startup_under_nohup_ignores_the_end_of_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ignored: bool
) -> None:
    def refuse(run: startup.Startup) -> None:
        raise RunnerError("no start")

    handled: list[int] = []
    monkeypatch.setattr(startup.Startup, "_wait_for_leftovers", refuse)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    monkeypatch.setattr(signal, "signal", lambda number, handler: handled.append(number))

    with pytest.raises(RunnerError):
        startup.Startup(StartOptions(port=0), Paths(tmp_path)).run()

    assert signal.SIGTERM in handled
    assert (signal.SIGHUP in handled) is not is_ignored
