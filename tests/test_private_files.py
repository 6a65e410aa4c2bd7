"""Private files: complete or absent, also for simultaneous readers and writers."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from toolbench.installation import ROOT
from toolbench.private_files import create_once, replace_file
from toolbench.running.paths import State, read_state

_THREADS = 8


def test_create_once_in_threads_returns_same_complete_file(tmp_path: Path) -> None:
    barrier = Barrier(_THREADS)
    path = tmp_path / "below" / "key"

    def make() -> bytes:
        barrier.wait()
        return os.urandom(32)

    with ThreadPoolExecutor(_THREADS) as pool:
        contents = set(pool.map(lambda _: create_once(path, make), range(_THREADS)))
    assert contents == {path.read_bytes()}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_replace_file_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()

    with pytest.raises(IsADirectoryError):
        replace_file(path, b"data")

    assert list(tmp_path.iterdir()) == [path]


def test_replace_file_never_shows_partial_content(tmp_path: Path) -> None:
    path = tmp_path / "running.json"
    State("http://old", "/tmp/s", {}).write(path)
    with path.open() as reading:
        State("http://new", "/tmp/s", {}).write(path)
        assert "http://old" in reading.read()
    state = read_state(path)
    assert (state.base if state else "", path.stat().st_mode & 0o777) == ("http://new", 0o600)
    replace_file(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"base": ""}', '{"environment": 1}'])
def test_settings_load_with_unreadable_state_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "running.json").write_text(text)
    code = "from toolbench import settings; print(settings.REDIS_URL, settings.SECRET_KEY)"
    environment = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "SECRET_KEY")}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"TOOLBENCH_VAR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    address, key = run.stdout.split()
    assert (address, len(key)) == ("redis://127.0.0.1:6379/0", 64)


def test_file_is_on_disk_before_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fsync = tmp_path / "key", os.fsync
    existed_at_sync: list[bool] = []

    def record_sync(descriptor: int) -> None:
        existed_at_sync.append(path.exists())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record_sync)
    create_once(path, lambda: b"first")
    assert existed_at_sync == [False]
    replace_file(path, b"second")
    assert existed_at_sync == [False, True]
