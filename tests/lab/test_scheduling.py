import logging

import pytest
from django.db import OperationalError

from toolbench.lab.models import Process
from toolbench.lab.scheduling import Job, Schedule, standing_schedule


def test_a_job_is_done_at_once_and_then_in_its_turn() -> None:
    now = [0.0]
    done: list[str] = []
    schedule = Schedule(
        (Job("a", lambda: done.append("often"), 2), Job("b", lambda: done.append("seldom"), 5)), clock=lambda: now[0]
    )
    assert schedule.tick() == 2
    now[0] = 2.5
    assert schedule.tick() == 2
    now[0] = 5.0
    schedule.tick()
    assert done == ["often", "seldom", "often", "often", "seldom"]


@pytest.mark.parametrize("error", [OperationalError("gone"), ValueError("broken")])
def test_a_job_that_fails_is_logged_and_the_others_go_on(
    error: Exception, caplog: pytest.LogCaptureFixture, db: None
) -> None:
    done: list[int] = []

    def fail() -> None:
        raise error

    with caplog.at_level(logging.WARNING):
        Schedule((Job("a", fail, 1), Job("b", lambda: done.append(1), 1))).tick()
    assert done == [1]
    assert str(error) in caplog.text


@pytest.mark.django_db(transaction=True)
def test_the_schedule_shows_a_sign_of_life() -> None:
    standing_schedule().tick()
    assert Process.objects.get().kind == "scheduler"
