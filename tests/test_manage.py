"""Commands of manage.py without a database."""

import json
import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def test_base_url_is_address_of_running_instance(tmp_path: Path) -> None:
    running = {"base": "", "sockets": "", "environment": {"TOOLBENCH_BASE": "http://127.0.0.1:8733"}}
    (tmp_path / "running.json").write_text(json.dumps(running))
    environment = {**os.environ, "TOOLBENCH_VAR": str(tmp_path)}
    environment.pop("TOOLBENCH_BASE", None)
    command = [sys.executable, "-c", "from toolbench import settings; print(settings.BASE_URL)"]
    result = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "http://127.0.0.1:8733"


def test_manage_without_database_prints_one_sentence() -> None:
    environment = {**os.environ, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:9/bench"}
    command = [sys.executable, "manage.py", "sweep"]
    result = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("The database does not answer: start `make up`, or correct DATABASE_URL.")
    assert len(result.stderr.splitlines()) == 1
