"""Home page: the newest failures of different classes, runs and workers."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.models import Process
from toolbench.lab.results.home import get_home_page

pytestmark = pytest.mark.django_db


def make_failure(failure_class: str, *, scenario: str = "happy_path", **run: object) -> int:
    cell = make_cell(make_config(make_run(**run)), scenario)
    return make_trial(cell, "fail", failure_class=failure_class).pk


def test_home_page_shows_newest_failure_of_each_class() -> None:
    make_failure("wrong_state")
    newest = [make_failure("wrong_state"), make_failure("no_tool_calls"), make_failure("tool_error")]
    make_failure("other", simulated=True)
    assert [failure.trial_id for failure in get_home_page().failures] == newest[::-1]


def test_home_page_lists_no_failed_control() -> None:
    make_failure("wrong_reply", scenario="chat_only")
    assert get_home_page().failures == ()


def test_home_page_recent_runs_exclude_simulated_and_local_runs() -> None:
    mine = make_run()
    make_run(simulated=True)
    make_run(purpose="first_page")
    assert [row.run.pk for row in get_home_page().recent] == [mine.pk]


def test_home_page_worker_without_heartbeat_for_a_minute_is_missing() -> None:
    assert not get_home_page().has_worker
    process = Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=timezone.now())
    assert get_home_page().has_worker
    process.seen_at = timezone.now() - timedelta(minutes=2)
    process.save()
    assert not get_home_page().has_worker


def test_home_page_number_of_queries_does_not_grow() -> None:
    counts = []
    for _ in range(2):
        for kind in ("a", "b", "c", "d"):
            make_failure(kind)
        with CaptureQueriesContext(connection) as queries:
            get_home_page()
        counts.append(len(queries))
    assert counts[0] == counts[1]
