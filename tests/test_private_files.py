"""Files for their owner alone are whole or not there, whoever comes at the same time."""

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

_AT_ONCE = 8


def test_threads_that_come_at_once_read_the_same_whole_file(tmp_path: Path) -> None:
    together = Barrier(_AT_ONCE)
    path = tmp_path / "below" / "key"

    def make() -> bytes:
        together.wait()
        return os.urandom(32)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        read = set(pool.map(lambda _: create_once(path, make), range(_AT_ONCE)))
    assert read == {path.read_bytes()}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_reader_never_finds_a_replaced_file_half_written(tmp_path: Path) -> None:
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
def test_the_settings_load_beside_a_state_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "running.json").write_text(text)
    code = "from toolbench import settings; print(settings.REDIS_URL, settings.SECRET_KEY)"
    plain = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "SECRET_KEY")}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=plain | {"TOOLBENCH_VAR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    address, key = run.stdout.split()
    assert (address, len(key)) == ("redis://127.0.0.1:6379/0", 64)
