"""Whether everything runs, for people and for a supervisor."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_provider, make_run
from tests.page_html import read_html
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


def test_page_shows_weight_of_a_trial_and_days_left(owner_client: Client) -> None:
    assert "fewer than 100 trials" in read_html(owner_client.get("/health/"))
    make_run(trial_count=700)
    text = " ".join(re.sub("<[^>]+>", " ", read_html(owner_client.get("/health/"))).split())
    assert "on average, with steps, bodies, search text and indexes" in text
    assert re.search(r"Full in [\d,]+ days, at the rate of the last 7 days \(700 trials,", text)
    assert "Gateway traces" in text
