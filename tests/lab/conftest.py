"""Shared fixtures of the tests of the lab: a scripted provider, and functions on other database connections."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections

from tests.lab.scripted_runs import answer_correctly
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.providers.scripted_server import ScriptedServer

RunInThread = Callable[..., Any]


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """Yield a provider that answers every scenario of the state group correctly."""
    with ScriptedServer(answer_correctly) as provider:
        yield provider


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[RunInThread]:
    """Yield a function that calls another one in a thread with its own connection and returns a future."""
    pool = ThreadPoolExecutor(max_workers=8)

    def call(verb: Callable[..., Any], *args: Any, **named: Any) -> Any:
        def run() -> Any:
            try:
                return verb(*args, **named)
            finally:
                connections.close_all()

        return pool.submit(run)

    yield call
    pool.shutdown()


def wait_for_blocked_sessions(sessions: int = 1) -> None:
    """Wait until `sessions` other sessions of this database wait for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with connection.cursor() as cursor:
        for _ in range(1500):
            cursor.execute(waiting)
            if len(cursor.fetchall()) >= sessions:
                return
            cursor.execute("SELECT pg_sleep(0.02), pg_stat_clear_snapshot()")
    raise AssertionError("nobody waits for a lock")


@pytest.fixture
def eval_environment(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove variables of the environment that `eval` reads, turn its progress bar off, and load the built-in data."""
    for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "OPENROUTER_TRIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERBOSE", "1")
    load_builtin_data()
