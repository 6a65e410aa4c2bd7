"""The fixtures that every room's tests stand on."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.browsers import Watch
from tests.workers import WorkerProcess
from toolbench.celery import app


def test_a_worker_beside_the_tests_answers_on_the_tests_own_broker(worker: WorkerProcess) -> None:
    answers = app.control.ping(destination=[f"{worker.name}@test"], timeout=10, limit=1)

    assert answers == [{f"{worker.name}@test": {"ok": "pong"}}]


def test_a_breach_of_the_content_policy_is_seen(visitor_page: Page, watch: Watch) -> None:
    watch.expected = ["Content Security Policy"]

    visitor_page.goto("/sign-in/")
    visitor_page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: 'alert(1)'}))")

    assert any("Content Security Policy" in line for line in watch.complaints)


def test_the_owner_is_signed_in(browser_page: Page, owner: User) -> None:
    answer = browser_page.goto("/sign-in/")

    assert answer is not None
    assert answer.status == 200
    assert owner.is_active


@pytest.mark.parametrize("path", ["/static/css/base.css", "/static/plotly/plotly.min.js"])
def test_static_files_need_no_collecting(browser_page: Page, path: str) -> None:
    answer = browser_page.request.get(path)

    assert answer.status == 200
