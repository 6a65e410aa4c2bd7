from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from tests.lab.conftest import RunInThread
from tests.lab.schedules.scheduled import make_schedule
from toolbench.lab.models import JobFailure, Run, Schedule, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.schedules.launching import SkippedError, launch_due_schedules, launch_now
from toolbench.lab.worker.completion import cancel_queued_trials, finish_runs

pytestmark = pytest.mark.django_db


def make_due(schedule: Schedule) -> Schedule:
    Schedule.objects.filter(pk=schedule.pk).update(next_due_at=timezone.now() - timedelta(seconds=1))
    return Schedule.objects.get(pk=schedule.pk)


def test_launch_due_schedules_launches_once_and_sets_the_next_time() -> None:
    schedule = make_schedule(make_model(), requests_per_run=50)
    (run_id,) = launch_due_schedules()
    assert launch_due_schedules() == ()
    run = Run.objects.get(pk=run_id)
    assert (run.schedule_id, run.title, run.request_cap) == (schedule.pk, "Core", 50)
    schedule.refresh_from_db()
    assert timezone.now() + timedelta(hours=23) < schedule.next_due_at < timezone.now() + timedelta(hours=25)


@pytest.mark.parametrize("fields", [{"active": False}, {"next_due_at": timezone.now() + timedelta(days=9)}])
def test_launch_due_schedules_ignores_paused_and_future_schedules(fields: dict[str, Any]) -> None:
    make_schedule(make_model(), **fields)
    assert launch_due_schedules() == ()


def test_launch_due_schedules_skips_while_the_last_run_is_running() -> None:
    schedule = make_schedule(make_model())
    (first,) = launch_due_schedules()
    make_due(schedule)
    assert launch_due_schedules() == ()
    schedule.refresh_from_db()
    assert schedule.skip_reason == f"Run {first} has not ended: it is running."
    assert schedule.skipped_at is not None
    assert schedule.next_due_at > timezone.now()
    Run.objects.update(state=Run.State.CANCELLING)
    cancel_queued_trials()
    finish_runs()
    make_due(schedule)
    assert len(launch_due_schedules()) == 1
    schedule.refresh_from_db()
    assert schedule.skip_reason == ""


def test_launch_due_schedules_skips_at_the_monthly_request_budget() -> None:
    schedule = make_schedule(make_model(), requests_per_run=100, requests_per_month=150)
    make_run(schedule=schedule, requests_reserved=51)
    assert launch_due_schedules() == ()
    schedule.refresh_from_db()
    assert "51 of 150 requests are spent" in schedule.skip_reason


def test_launch_due_schedules_ignores_requests_of_an_earlier_month() -> None:
    schedule = make_schedule(make_model(), requests_per_run=100, requests_per_month=150)
    run = make_run(schedule=schedule, requests_reserved=51)
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=32))
    assert len(launch_due_schedules()) == 1


def test_launch_due_schedules_skips_a_plan_with_a_deleted_model() -> None:
    model = make_model()
    schedule = make_schedule(model)
    model.delete()
    assert launch_due_schedules() == ()
    schedule.refresh_from_db()
    assert schedule.skip_reason.startswith("The plan cannot be launched: ")


def test_launch_due_schedules_continues_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, intact = make_schedule(make_model("a"), name="A"), make_schedule(make_model("b"), name="B")

    def launch_other(request: RunRequest, **named: Any) -> Run:
        if request.title == broken.name:
            raise RuntimeError("a defect")
        return launch(request, **named)

    monkeypatch.setattr("toolbench.lab.schedules.launching.launch", launch_other)
    (run_id,) = launch_due_schedules()
    assert Run.objects.get().pk == run_id
    assert Run.objects.get().schedule_id == intact.pk
    assert JobFailure.objects.get().job == "launching scheduled runs"
    broken.refresh_from_db()
    assert broken.skip_reason == "Toolbench itself failed (RuntimeError). See the worker's log for details."
    assert broken.skipped_at is not None
    assert broken.next_due_at > timezone.now()


def test_launch_due_schedules_stays_due_without_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = make_schedule(make_model())

    def raise_outage(*_: object, **named: object) -> None:
        raise OperationalError("the database restarts")

    monkeypatch.setattr("toolbench.lab.schedules.launching.launch", raise_outage)
    assert launch_due_schedules() == ()
    schedule.refresh_from_db()
    assert (schedule.skip_reason, schedule.next_due_at < timezone.now()) == ("", True)


def test_launch_due_schedules_skips_at_the_budget_of_the_provider() -> None:
    model = make_model(provider=make_provider(budget_per_month=0.5))
    schedule = make_schedule(model)
    trial = make_trial(make_cell(make_config(make_run(), model)), "pass", cost=0.75)
    Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now())
    assert launch_due_schedules() == ()
    schedule.refresh_from_db()
    assert "Example has spent $0.7500 of its budget of $0.5000" in schedule.skip_reason
    assert "Raise the budget on the provider's page" in schedule.skip_reason


def test_launch_now_refuses_while_a_run_is_running() -> None:
    schedule = make_schedule(make_model(), active=False)
    run = launch_now(schedule.pk)
    with pytest.raises(SkippedError, match=f"Run {run.pk} has not ended"):
        launch_now(schedule.pk)


def test_launch_due_schedules_uses_the_run_budget_as_confirmation() -> None:
    schedule = make_schedule(make_model(), plan={"trials": 300}, requests_per_run=400)
    (run_id,) = launch_due_schedules()
    assert Run.objects.get(pk=run_id).request_cap == 400
    assert schedule.runs.count() == 1


@pytest.mark.django_db(transaction=True)
def test_launch_due_schedules_by_several_schedulers_launches_once(elsewhere: RunInThread) -> None:
    for name in ("a", "b", "c"):
        make_schedule(make_model(), name=name)
    results = [elsewhere(launch_due_schedules) for _ in range(4)]
    assert sum(len(result.result()) for result in results) == 3
    assert Run.objects.count() == 3
