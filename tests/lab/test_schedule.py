import logging
from functools import partial

import pytest
from django.db import OperationalError

from tests.factories import make_cell, make_config, make_run
from toolbench.lab import schedule as schedule_module
from toolbench.lab.models import JobFailure, Process
from toolbench.lab.schedule import JobSchedule, PacedSweep, ScheduledJob, build_schedule
from toolbench.lab.worker.background_jobs import COUNT_FACTOR, CountPacing


def test_job_schedule_runs_jobs_immediately_and_then_at_intervals() -> None:
    now = [0.0]
    done: list[str] = []
    schedule = JobSchedule(
        (ScheduledJob("a", lambda: done.append("often"), 2), ScheduledJob("b", lambda: done.append("seldom"), 5)),
        clock=lambda: now[0],
    )
    assert schedule.tick() == 2
    now[0] = 2.5
    assert schedule.tick() == 2
    now[0] = 5.0
    schedule.tick()
    assert done == ["often", "seldom", "often", "often", "seldom"]


@pytest.mark.parametrize("error", [OperationalError("gone"), ValueError("broken")])
def test_job_schedule_logs_failed_job_and_runs_the_others(
    error: Exception, caplog: pytest.LogCaptureFixture, db: None
) -> None:
    done: list[int] = []

    def fail() -> None:
        raise error

    with caplog.at_level(logging.WARNING):
        JobSchedule((ScheduledJob("a", fail, 1), ScheduledJob("b", lambda: done.append(1), 1))).tick()
    assert done == [1]
    assert str(error) in caplog.text
    assert JobFailure.objects.get().job == "a"


@pytest.mark.parametrize("place", range(11))
@pytest.mark.django_db(transaction=True)
def test_build_schedule_each_job_may_fail_alone(place: int) -> None:
    schedule = build_schedule()
    done: set[str] = set()
    assert len(schedule.jobs) == 11
    for number, job in enumerate(schedule.jobs):
        job.action = partial(_fail_or_do, number == place, done, job.name)
    schedule.tick()
    assert {job.name for job in schedule.jobs} - done == {schedule.jobs[place].name}
    assert JobFailure.objects.get().job == schedule.jobs[place].name


def _fail_or_do(fails: bool, done: set[str], name: str) -> None:
    if fails:
        raise KeyError("injected")
    done.add(name)


@pytest.mark.django_db(transaction=True)
def test_build_schedule_first_tick_marks_cell_set_aside_stale() -> None:
    cell = make_cell(make_config(make_run()), compute_error="bigint out of range", stale=False)
    build_schedule().tick()
    cell.refresh_from_db()
    assert (cell.compute_error, cell.stale) == ("", False)


@pytest.mark.django_db(transaction=True)
def test_build_schedule_first_tick_records_heartbeat() -> None:
    build_schedule().tick()
    assert Process.objects.get().kind == "scheduler"


def test_paced_sweep_omits_counts_until_pause_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, counted = [0.0], []

    def sweep_slowly(*, with_counts: bool = True) -> None:
        counted.append(with_counts)
        now[0] += 1.0

    monkeypatch.setattr(schedule_module, "sweep", sweep_slowly)
    paced = PacedSweep(CountPacing(lambda: now[0]))
    paced.run()
    paced.run()
    now[0] += COUNT_FACTOR
    paced.run()
    assert counted == [True, False, True]
