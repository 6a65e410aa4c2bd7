"""The command line without a database."""

import json
import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def test_a_link_leads_to_the_address_of_what_runs(tmp_path: Path) -> None:
    running = {"base": "", "sockets": "", "environment": {"TOOLBENCH_BASE": "http://127.0.0.1:8733"}}
    (tmp_path / "running.json").write_text(json.dumps(running))
    environment = {**os.environ, "TOOLBENCH_VAR": str(tmp_path)}
    environment.pop("TOOLBENCH_BASE", None)
    command = [sys.executable, "-c", "from toolbench import settings; print(settings.BASE_URL)"]
    ran = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "http://127.0.0.1:8733"


def test_a_database_that_does_not_answer_gets_one_sentence() -> None:
    environment = {**os.environ, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:9/bench"}
    command = [sys.executable, "manage.py", "sweep"]
    ran = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("The database does not answer: start `make up`, or correct DATABASE_URL.")
    assert len(ran.stderr.splitlines()) == 1
