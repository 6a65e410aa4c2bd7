"""Fixtures for every room: our own PostgreSQL and Valkey, started only when a test needs them."""

import shutil

import pytest

from tests.environment import FOLDER, WORKER
from tests.servers import TestServers

_STARTED = pytest.StashKey[TestServers]()


def pytest_configure(config: pytest.Config) -> None:
    """Under xdist the controller starts the servers, since they must outlive each worker."""
    if getattr(config.option, "numprocesses", None) and not WORKER:
        config.stash[_STARTED] = TestServers.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if servers := config.stash.get(_STARTED, None):
        servers.stop()
    if not WORKER:
        shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> None:
    """PostgreSQL and Valkey run from here to the end of the session."""
    if not WORKER and _STARTED not in request.config.stash:
        request.config.stash[_STARTED] = TestServers.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """pytest-django asks for this before it makes the database."""
