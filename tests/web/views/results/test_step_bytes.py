"""The bytes of a step are shown as text and handed out as a file, never as a page."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.page_html import read_html

pytestmark = pytest.mark.django_db

HOSTILE = b"<script>alert(1)</script>\x00"


def step_of_a_trial() -> int:
    step = make_step(make_trial(make_cell(make_config(make_run()))), bodies={"response": HOSTILE})
    return int(step.pk)


def test_they_are_text_with_escapes(owner_client: Client) -> None:
    shown = read_html(owner_client.get(f"/steps/{step_of_a_trial()}/response/"))
    assert "&lt;script&gt;alert(1)" in shown
    assert 'class="esc">\\x00<' in shown


def test_the_download_is_exact_and_no_browser_runs_it(owner_client: Client) -> None:
    answer = owner_client.get(f"/steps/{step_of_a_trial()}/response.bin")
    assert answer.content == HOSTILE
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="trial-')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_trial_page_leads_to_them(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    step = make_step(trial)
    assert f"/steps/{step.pk}/response/" in read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.response"))


@pytest.mark.parametrize("path", ["/steps/424242/response/", "/steps/424242/request.bin", "/steps/1/facts/"])
def test_what_is_not_there_is_a_page_that_says_so(owner_client: Client, path: str) -> None:
    assert owner_client.get(path).status_code == 404


def test_request_is_shown_as_a_curl_command_in_plain_text(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    step = make_step(trial, url="https://example.test/", bodies={"request": HOSTILE})
    assert f'href="/steps/{step.pk}/curl/"' in read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.request"))
    answer = owner_client.get(f"/steps/{step.pk}/curl/")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert b"<script>alert(1)" in answer.content
    assert owner_client.get("/steps/424242/curl/").status_code == 404
