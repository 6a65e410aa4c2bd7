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


def test_backup_and_restore_work_while_no_instance_runs(tmp_path: Path) -> None:
    """Neither command needs a running instance: each starts the database of its data folder."""
    variables = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}

    def run_toolbench(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**variables, "TOOLBENCH_VAR": str(tmp_path / folder)}
        command = [sys.executable, "-m", "toolbench.cli", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    file = tmp_path / "all.zip"
    refused = run_toolbench("old", "backup", str(file))
    assert refused.returncode == 1
    assert "has no tables of Toolbench" in refused.stderr
    assert not file.exists()
    with serve_database(Paths(tmp_path / "old")) as url:
        command = [sys.executable, "-m", "toolbench.manage", "migrate", "--verbosity=0"]
        subprocess.run(command, cwd=ROOT, env={**variables, "DATABASE_URL": url}, check=True, timeout=300)

    written = run_toolbench("old", "backup", str(file))
    restored = run_toolbench("new", "restore", str(file))

    assert written.stdout.startswith(f"{file}: 0 runs, 0 trials, "), written.stderr
    assert restored.stdout.startswith("Restored 0 runs and 0 trials of "), restored.stderr
    with serve_database(Paths(tmp_path / "new")) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM lab_stepbody").fetchone() == (0,)
