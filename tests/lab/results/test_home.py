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


def fail(failure_class: str, *, scenario: str = "happy_path", **run: object) -> int:
    cell = make_cell(make_config(make_run(**run)), scenario)
    return make_trial(cell, "fail", failure_class=failure_class).pk


def test_three_failures_of_different_classes_the_newest_of_each() -> None:
    fail("wrong_state")
    newest = [fail("wrong_state"), fail("no_tool_calls"), fail("tool_error")]
    fail("other", simulated=True)
    assert [failure.trial_id for failure in get_home_page().failures] == newest[::-1]


def test_a_control_is_not_worth_opening_and_nothing_is_made_up() -> None:
    fail("wrong_reply", scenario="chat_only")
    assert get_home_page().failures == ()


def test_my_runs_hold_neither_simulated_ones_nor_the_local_one() -> None:
    mine = make_run()
    make_run(simulated=True)
    make_run(purpose="first_page")
    assert [row.run.pk for row in get_home_page().recent] == [mine.pk]


def test_a_worker_that_has_not_beaten_for_a_minute_is_not_working() -> None:
    assert not get_home_page().has_worker
    beat = Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=timezone.now())
    assert get_home_page().has_worker
    beat.seen_at = timezone.now() - timedelta(minutes=2)
    beat.save()
    assert not get_home_page().has_worker


def test_number_of_queries_does_not_grow() -> None:
    counts = []
    for _ in range(2):
        for kind in ("a", "b", "c", "d"):
            fail(kind)
        with CaptureQueriesContext(connection) as seen:
            get_home_page()
        counts.append(len(seen))
    assert counts[0] == counts[1]
