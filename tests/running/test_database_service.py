"""PostgreSQL alone, while Toolbench is stopped."""

from pathlib import Path

import psycopg
import pytest

from toolbench.running.database_service import serve_database
from toolbench.running.errors import RunnerError
from toolbench.running.paths import Lock, Paths


def test_serve_database_serves_stops_and_keeps_data(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    with serve_database(paths) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (number int)")
        with pytest.raises(RunnerError, match="Toolbench runs"), serve_database(paths):
            pass
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
    with serve_database(paths) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_serve_database_refuses_a_running_instance(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "up.lock")
    assert lock.acquire()
    with pytest.raises(RunnerError, match="Toolbench runs"), serve_database(Paths(tmp_path)):
        pass
    lock.release()
    assert not (tmp_path / "postgres").exists()
