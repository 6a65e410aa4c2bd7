"""Whether everything runs, for people and for a supervisor."""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.factories import make_provider, make_run
from tests.page_html import read_html
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.models import Process
from toolbench.lab.worker.job_failures import count_failure

pytestmark = pytest.mark.django_db


def test_a_supervisor_needs_no_sign_in() -> None:
    response = Client().get("/health/live")
    assert (response.status_code, response.content) == (200, b"ok")


def test_the_page_is_for_people_who_are_signed_in(owner_client: Client) -> None:
    assert Client().get("/health/").status_code == 302
    assert "No worker is running" in read_html(owner_client.get("/health/"))


def test_a_worker_that_beats_is_alive(owner_client: Client) -> None:
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=timezone.now())
    part = read_html(owner_client.get("/health/", headers={"HX-Request": "true"}))
    assert "alive" in part
    assert "No worker" not in part
    assert "<html" not in part


def test_jobs_that_failed_are_named_and_not_all_is_well(owner_client: Client) -> None:
    for kind in ("worker", "scheduler"):
        Process.objects.create(name=f"{kind}@h:1", kind=kind, host="h", pid=1, seen_at=timezone.now())
    well = "no background job failed in the last day"
    assert well in read_html(owner_client.get("/health/"))
    count_failure("sweeping", ValueError("sk-secret"), make_provider("Somewhere").pk)
    count_failure("sweeping", ValueError("sk-secret"), make_provider("Somewhere").pk)
    text = read_html(owner_client.get("/health/"))
    assert "Background jobs failed in the last day" in text
    assert "Sweeping Somewhere ValueError 2" in " ".join(re.sub("<[^>]+>", " ", text).split())
    assert well not in text
    assert "sk-secret" not in text
    assert Client().get("/health/live").content == b"ok"


def test_problems_stand_in_words_with_what_to_do(owner_client: Client) -> None:
    seen = timezone.now() - timedelta(minutes=10)
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=seen)
    page = read_html(owner_client.get("/health/"))
    assert "1 process stopped sending heartbeats" in page
    assert "worker@h:1 (10 min ago)" in page
    assert "Read the log of the process" in page


def test_page_shows_size_of_a_trial_and_days_left(owner_client: Client) -> None:
    assert "fewer than 100 trials" in read_html(owner_client.get("/health/"))
    make_run(trial_count=700)
    text = " ".join(re.sub("<[^>]+>", " ", read_html(owner_client.get("/health/"))).split())
    assert "on average, with steps, bodies, search text and indexes" in text
    assert re.search(r"Full in [\d,]+ days, at the rate of the last 7 days \(700 trials,", text)
    assert "Gateway traces" in text


def test_metrics_are_for_this_machine_and_for_tokens(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Client().get("/health/metrics").content.startswith(b"# HELP toolbench_")
    for proxied in ({"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}, {"Via": "1.1 proxy"}):
        refused = Client().get("/health/metrics", headers=proxied)
        assert refused.status_code == 401
        assert b"Authorization: Bearer TOKEN" in refused.content
    assert Client(REMOTE_ADDR="192.0.2.1").get("/health/metrics").status_code == 401
    assert Client(REMOTE_ADDR="::1").get("/health/metrics").status_code == 200
    monkeypatch.setattr(settings, "BASE_URL", "http://bench.example.org")
    assert Client().get("/health/metrics").status_code == 401
    _, secret = create_api_token(owner, "Prometheus", ["read"], None)
    away = Client(REMOTE_ADDR="192.0.2.1", headers={"Authorization": f"Bearer {secret}"})
    assert away.get("/health/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_wrong_token_is_refused_on_this_machine_too(owner: User) -> None:
    _, serving = create_api_token(owner, "Program", ["serve"], None)
    for header in (f"Bearer {serving}", "Bearer tb_unknown", "Basic b3duZXI6"):
        assert Client(headers={"Authorization": header}).get("/health/metrics").status_code == 401
