"""The fixtures that every room's tests stand on."""

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Page

from tests.browsers import ComplaintRecorder
from tests.database_cleanup import empty_tables
from tests.factories import make_cell, make_config, make_run, make_trial
from tests.worker_process import WorkerProcess
from toolbench.celery import app
from toolbench.lab.models import Provider, Run


def test_a_worker_beside_the_tests_answers_on_the_tests_own_broker(worker: WorkerProcess) -> None:
    answers = app.control.ping(destination=[f"{worker.name}@test"], timeout=10, limit=1)

    assert answers == [{f"{worker.name}@test": {"ok": "pong"}}]


@pytest.mark.django_db(transaction=True)
def test_nothing_is_left_of_a_test_whose_rows_were_committed() -> None:
    make_trial(make_cell(make_config(make_run())))
    permissions = Permission.objects.count()

    empty_tables()

    assert not Provider.objects.exists()
    assert not Run.objects.exists()
    assert permissions == Permission.objects.count() > 0


def test_a_breach_of_the_content_policy_is_seen(visitor_page: Page, watch: ComplaintRecorder) -> None:
    watch.expected = ["Content Security Policy"]

    visitor_page.goto("/sign-in/")
    with visitor_page.expect_console_message():
        visitor_page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: '1'}))")

    assert any("Content Security Policy" in line for line in watch.complaints)


def test_the_owner_is_signed_in(browser_page: Page, owner: User) -> None:
    answer = browser_page.goto("/sign-in/")

    assert answer is not None
    assert answer.status == 200
    assert owner.is_active


def test_static_files_need_no_collecting(browser_page: Page) -> None:
    answer = browser_page.request.get("/static/css/base.css")

    assert answer.status == 200
