"""Fixtures that the tests of all packages use."""

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from tests.browsers import ComplaintRecorder
from tests.database_cleanup import empty_tables
from tests.factories import make_cell, make_config, make_run, make_trial
from tests.worker_process import WorkerProcess
from toolbench.celery import app
from toolbench.lab.models import Provider, Run
from toolbench.lab.worker.queue import notify_workers


def test_worker_fixture_answers_on_the_broker_of_the_tests(worker: WorkerProcess) -> None:
    replies = app.control.ping(destination=[f"{worker.name}@test"], timeout=10, limit=1)

    assert replies == [{f"{worker.name}@test": {"ok": "pong"}}]


@pytest.mark.django_db(transaction=True)
def test_worker_fixture_deletes_messages_of_earlier_tests(request: pytest.FixtureRequest) -> None:
    notify_workers([1])
    broker = Redis.from_url(settings.REDIS_URL)
    assert broker.llen("celery") > 0

    request.getfixturevalue("new_worker")

    assert broker.llen("celery") == 0


@pytest.mark.django_db(transaction=True)
def test_empty_tables_deletes_committed_rows_but_no_permissions() -> None:
    make_trial(make_cell(make_config(make_run())))
    permissions = Permission.objects.count()

    empty_tables()

    assert not Provider.objects.exists()
    assert not Run.objects.exists()
    assert permissions == Permission.objects.count() > 0


def test_complaint_recorder_sees_a_breach_of_the_content_policy(visitor_page: Page, watch: ComplaintRecorder) -> None:
    watch.expected = ["Content Security Policy"]

    visitor_page.goto("/sign-in/")
    with visitor_page.expect_console_message():
        visitor_page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: '1'}))")

    assert any("Content Security Policy" in line for line in watch.complaints)


def test_browser_page_is_signed_in(browser_page: Page, live_server: LiveServer) -> None:
    response = browser_page.goto("/runs/")

    assert response is not None
    assert response.status == 200
    assert browser_page.url == f"{live_server.url}/runs/"  # a visitor is redirected to /sign-in/


def test_live_server_serves_uncollected_static_files(browser_page: Page) -> None:
    response = browser_page.request.get("/static/css/base.css")

    assert response.status == 200
