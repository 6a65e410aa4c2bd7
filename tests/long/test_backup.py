"""`toolbench backup` and `toolbench restore` while no instance runs."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from toolbench.installation import ROOT
from toolbench.running.database_service import serve_database
from toolbench.running.paths import Paths

pytestmark = pytest.mark.long


def test_stopped_installation_is_backed_up_and_restored(tmp_path: Path) -> None:
    """Neither verb needs a running instance: each starts the database of its data folder."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}

    def call(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**kept, "TOOLBENCH_VAR": str(tmp_path / folder)}
        command = [sys.executable, "-m", "toolbench.cli", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    file = tmp_path / "all.zip"
    empty = call("old", "backup", str(file))
    assert empty.returncode == 1
    assert "has no tables of Toolbench" in empty.stderr
    assert not file.exists()
    with serve_database(Paths(tmp_path / "old")) as url:
        command = [sys.executable, "-m", "toolbench.manage", "migrate", "--verbosity=0"]
        subprocess.run(command, cwd=ROOT, env={**kept, "DATABASE_URL": url}, check=True, timeout=300)

    written = call("old", "backup", str(file))
    restored = call("new", "restore", str(file))

    assert written.stdout.startswith(f"{file}: 0 runs, 0 trials, "), written.stderr
    assert restored.stdout.startswith("Restored 0 runs and 0 trials of "), restored.stderr
    with serve_database(Paths(tmp_path / "new")) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM lab_stepbody").fetchone() == (0,)
