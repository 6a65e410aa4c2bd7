"""Health pages for people, supervisors and monitoring."""

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


def test_health_live_needs_no_sign_in() -> None:
    response = Client().get("/health/live")
    assert (response.status_code, response.content) == (200, b"ok")


def test_health_page_needs_sign_in(owner_client: Client) -> None:
    assert Client().get("/health/").status_code == 302
    assert "No worker is running" in read_html(owner_client.get("/health/"))


def test_health_page_shows_worker_with_heartbeat_as_alive(owner_client: Client) -> None:
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=timezone.now())
    part = read_html(owner_client.get("/health/", headers={"HX-Request": "true"}))
    assert "alive" in part
    assert "No worker" not in part
    assert "<html" not in part


def test_health_page_names_failed_jobs(owner_client: Client) -> None:
    for kind in ("worker", "scheduler"):
        Process.objects.create(name=f"{kind}@h:1", kind=kind, host="h", pid=1, seen_at=timezone.now())
    no_failure = "no background job failed in the last day"
    assert no_failure in read_html(owner_client.get("/health/"))
    count_failure("sweeping", ValueError("sk-secret"), make_provider("Somewhere").pk)
    count_failure("sweeping", ValueError("sk-secret"), make_provider("Somewhere").pk)
    text = read_html(owner_client.get("/health/"))
    assert "Background jobs failed in the last day" in text
    assert "Sweeping Somewhere ValueError 2" in " ".join(re.sub("<[^>]+>", " ", text).split())
    assert no_failure not in text
    assert "sk-secret" not in text
    assert Client().get("/health/live").content == b"ok"


def test_health_page_names_problem_and_next_step(owner_client: Client) -> None:
    seen = timezone.now() - timedelta(minutes=10)
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=seen)
    page = read_html(owner_client.get("/health/"))
    assert "1 process stopped sending heartbeats" in page
    assert "worker@h:1 (10 min ago)" in page
    assert "Read the log of the process" in page


def test_health_page_shows_size_of_trial_and_days_left(owner_client: Client) -> None:
    assert "fewer than 100 trials" in read_html(owner_client.get("/health/"))
    make_run(trial_count=700)
    text = " ".join(re.sub("<[^>]+>", " ", read_html(owner_client.get("/health/"))).split())
    assert "on average, with steps, bodies, search text and indexes" in text
    assert re.search(r"Full in (?:[\d,]+ days|more than 10 years), at the rate of the last 7 days \(700 trials,", text)
    assert "Gateway traces" in text


def test_health_metrics_answer_local_requests_and_tokens_only(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Client().get("/health/metrics").content.startswith(b"# HELP toolbench_")
    for proxy_headers in ({"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}, {"Via": "1.1 proxy"}):
        refused = Client().get("/health/metrics", headers=proxy_headers)
        assert refused.status_code == 401
        assert b"Authorization: Bearer TOKEN" in refused.content
    assert Client(REMOTE_ADDR="192.0.2.1").get("/health/metrics").status_code == 401
    assert Client(REMOTE_ADDR="::1").get("/health/metrics").status_code == 200
    monkeypatch.setattr(settings, "BASE_URL", "http://bench.example.org")
    assert Client().get("/health/metrics").status_code == 401
    _, secret = create_api_token(owner, "Prometheus", ["read"], None)
    remote_client = Client(REMOTE_ADDR="192.0.2.1", headers={"Authorization": f"Bearer {secret}"})
    assert remote_client.get("/health/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_health_metrics_refuse_wrong_token_of_local_request(owner: User) -> None:
    _, serve_secret = create_api_token(owner, "Program", ["serve"], None)
    for header in (f"Bearer {serve_secret}", "Bearer tb_unknown", "Basic b3duZXI6"):
        assert Client(headers={"Authorization": header}).get("/health/metrics").status_code == 401
