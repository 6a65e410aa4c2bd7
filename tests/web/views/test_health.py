"""Whether everything runs, for people and for a supervisor."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_provider
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
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=timezone.now())
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
