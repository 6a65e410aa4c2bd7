"""The command line without a database."""

import os
import subprocess
import sys

from django.conf import settings


def test_a_database_that_does_not_answer_gets_one_sentence() -> None:
    environment = {**os.environ, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:9/bench"}
    command = [sys.executable, "manage.py", "sweep"]
    ran = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("The database does not answer: start `make up`, or correct DATABASE_URL.")
    assert len(ran.stderr.splitlines()) == 1
