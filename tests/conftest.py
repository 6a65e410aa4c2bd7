"""Fixtures for all tests. Servers, workers and browsers start only when a test requests them."""

import os
import shutil
from collections.abc import Iterator

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.template.base import Variable
from django.test import Client, TransactionTestCase
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from tests.browsers import TIMEOUT_MS, ComplaintRecorder, find_browser, list_chromium_flags
from tests.database_cleanup import empty_tables
from tests.environment import SESSION_FOLDER, WORKER_ID
from tests.servers import TestServers
from tests.strict_templates import UNKNOWN_NAMES, resolve_strict
from tests.worker_process import WorkerProcess
from toolbench.lab.accounts.sign_in import get_first_owner

LONGEST_TEST_FILES = (
    "tests/running/test_up.py",
    "tests/lab/test_kills.py",
    "tests/lab/test_crashes.py",
    "tests/journeys/",
    "tests/providers/simulated/",
)
_STARTED = pytest.StashKey[TestServers]()

# No test asserts a wall-clock time, but by default Hypothesis fails an example that takes 200 ms.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers in the controller under xdist, since they must outlive each worker."""
    if getattr(config.option, "numprocesses", None) and not WORKER_ID:
        config.stash[_STARTED] = TestServers.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if servers := config.stash.get(_STARTED, None):
        servers.stop()
    if not WORKER_ID:
        shutil.rmtree(SESSION_FOLDER, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a browser, and sort the longest files first, so that none runs on alone at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST_TEST_FILES))
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> None:
    """PostgreSQL and Valkey, running until the end of the session."""
    if not WORKER_ID and _STARTED not in request.config.stash:
        request.config.stash[_STARTED] = TestServers.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None, django_db_modify_db_settings_parallel_suffix: None) -> Iterator[None]:
    """Start the servers before pytest-django creates the database, and replace its cleanup by a cheaper one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty_tables())
        yield


@pytest.fixture(autouse=True, scope="session")
def strict_templates() -> Iterator[None]:
    """Refuse unknown names in every template that a test renders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Variable, "_resolve_lookup", resolve_strict)
        yield


@pytest.fixture(autouse=True)
def no_unknown_template_names(strict_templates: None) -> Iterator[None]:
    """Fail the test if a template used an unknown name, even if a tag caught the exception."""
    UNKNOWN_NAMES.clear()
    yield
    assert UNKNOWN_NAMES == []


@pytest.fixture
def owner(db: None) -> User:
    """Account of the owner."""
    return get_first_owner()


@pytest.fixture
def owner_client(owner: User) -> Client:
    """Django's test client, signed in as the owner."""
    client = Client()
    client.force_login(owner)
    return client


@pytest.fixture
def new_worker(transactional_db: None) -> Iterator[WorkerProcess]:
    """Celery worker that has not been started. Messages that earlier tests sent are deleted.

    A worker took more than a minute for a thousand of them before it came to the test's own message.
    """
    Redis.from_url(settings.REDIS_URL).flushdb()
    process = WorkerProcess(f"worker{WORKER_ID}")
    yield process
    process.stop()


@pytest.fixture
def worker(new_worker: WorkerProcess) -> WorkerProcess:
    """Celery worker in its own process, with the test database and the test broker."""
    new_worker.start()
    return new_worker


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for the tests of one file.

    While it runs, this thread has an event loop, so Django's check against that is off, and `asyncio.run` must be
    called in another thread.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setitem(os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        launched = playwright.chromium.launch(executable_path=find_browser(), args=list_chromium_flags())
        yield launched
        launched.close()


@pytest.fixture
def watch() -> ComplaintRecorder:
    """Recorder of the browser's complaints. A test adds complaints that it causes on purpose to `expected`."""
    return ComplaintRecorder()


@pytest.fixture
def visitor_page(browser: Browser, live_server: LiveServer, watch: ComplaintRecorder) -> Iterator[Page]:
    """Page of the live server without a sign-in. Paths are relative: `page.goto("/runs/")`."""
    context = browser.new_context(base_url=live_server.url)
    context.set_default_timeout(TIMEOUT_MS)
    watch.over(context)
    yield context.new_page()
    context.close()
    assert watch.unexpected() == []


@pytest.fixture
def browser_page(visitor_page: Page, live_server: LiveServer, owner_client: Client) -> Page:
    """Page of the live server, signed in as the owner. A complaint of the browser fails the test."""
    name = settings.SESSION_COOKIE_NAME
    session = owner_client.cookies[name].value
    visitor_page.context.add_cookies([{"name": name, "value": session, "url": live_server.url}])
    return visitor_page
