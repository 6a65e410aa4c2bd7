"""Bytes of a step: shown as text, downloaded as a file, and as a curl command."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.page_html import read_html

pytestmark = pytest.mark.django_db

HOSTILE = b"<script>alert(1)</script>\x00"


def make_hostile_step() -> int:
    step = make_step(make_trial(make_cell(make_config(make_run()))), bodies={"response": HOSTILE})
    return int(step.pk)


def test_step_bytes_page_escapes_markup_and_control_characters(owner_client: Client) -> None:
    shown = read_html(owner_client.get(f"/steps/{make_hostile_step()}/response/"))
    assert "&lt;script&gt;alert(1)" in shown
    assert 'class="esc">\\x00<' in shown


def test_step_bytes_download_is_exact_and_not_executable(owner_client: Client) -> None:
    answer = owner_client.get(f"/steps/{make_hostile_step()}/response.bin")
    assert answer.content == HOSTILE
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="trial-')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_trial_page_links_to_step_bytes(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    step = make_step(trial)
    assert f"/steps/{step.pk}/response/" in read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.response"))


@pytest.mark.parametrize("path", ["/steps/424242/response/", "/steps/424242/request.bin", "/steps/1/facts/"])
def test_step_bytes_of_unknown_step_or_side_are_404(owner_client: Client, path: str) -> None:
    assert owner_client.get(path).status_code == 404


def test_step_curl_returns_command_as_plain_text(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    step = make_step(trial, url="https://example.test/", bodies={"request": HOSTILE})
    assert f'href="/steps/{step.pk}/curl/"' in read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.request"))
    answer = owner_client.get(f"/steps/{step.pk}/curl/")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert b"<script>alert(1)" in answer.content
    assert owner_client.get("/steps/424242/curl/").status_code == 404
