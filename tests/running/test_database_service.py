"""PostgreSQL alone, while Toolbench is stopped."""

from pathlib import Path

import psycopg
import pytest

from toolbench.running.database_service import serve_database
from toolbench.running.errors import RunnerError
from toolbench.running.paths import Lock, Paths


def test_database_is_served_and_stopped_afterwards(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    with serve_database(paths) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (number int)")
        with pytest.raises(RunnerError, match="Toolbench runs"), serve_database(paths):
            pass
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
    with serve_database(paths) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_database_of_a_running_instance_is_not_started_twice(tmp_path: Path) -> None:
    held = Lock(tmp_path / "up.lock")
    assert held.acquire()
    with pytest.raises(RunnerError, match="Toolbench runs"), serve_database(Paths(tmp_path)):
        pass
    held.release()
    assert not (tmp_path / "postgres").exists()
