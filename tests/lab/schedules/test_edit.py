from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from tests.factories import make_model, make_provider, make_run
from tests.lab.schedules.scheduled import make_schedule
from tests.lab.scripted_runs import build_request, launch_run
from toolbench.lab.models import Run, Schedule
from toolbench.lab.schedules.edit import (
    ScheduleError,
    ScheduleSettings,
    compute_next_due,
    create_schedule,
    edit_schedule,
    pin_baseline,
    set_active,
)
from toolbench.lab.schedules.launching import launch_now
from toolbench.lab.schedules.page import get_new_schedule

pytestmark = pytest.mark.django_db
NIGHTLY = ScheduleSettings("Nightly", None, 2, 100, 3000)


def test_create_schedule_omits_the_seed_and_pins_the_run() -> None:
    run = launch_run(make_model(), seed=7)
    Run.objects.update(state=Run.State.FINISHED)
    run.refresh_from_db()
    schedule = create_schedule(run, NIGHTLY, owner=None)
    assert (schedule.request["seed"], schedule.request["models"]) == (None, run.request["models"])
    assert list(schedule.baseline_runs.all()) == [run]
    assert schedule.rhythm == "nightly at 02:00 UTC"


def test_create_schedule_of_a_running_run_has_no_baseline() -> None:
    assert not create_schedule(launch_run(make_model()), NIGHTLY, owner=None).baseline_runs.exists()


def test_create_schedule_of_an_unlaunched_plan_has_no_baseline() -> None:
    model = make_model()
    schedule = create_schedule(build_request(model, seed=7), NIGHTLY, owner=None)
    assert (schedule.request["seed"], schedule.request["models"]) == (None, [model.pk])
    assert not schedule.baseline_runs.exists()
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "fields", [{"imported": True}, {"purpose": "resend", "request": {"trials": 1}}, {}, {"request": {"models": [1]}}]
)
def test_create_schedule_refuses_a_run_without_a_usable_plan(fields: dict[str, object]) -> None:
    with pytest.raises(ScheduleError):
        create_schedule(make_run(**fields), NIGHTLY, owner=None)


@pytest.mark.parametrize(
    "schedule_settings",
    [
        ScheduleSettings("", None, 2, 100, 3000),
        ScheduleSettings("x", 3, 2, 100, 3000),
        ScheduleSettings("x", None, None, 100, 3000),
        ScheduleSettings("x", 0, None, 100, 3000),
        ScheduleSettings("x", None, 24, 100, 3000),
        ScheduleSettings("x", None, 2, 0, 3000),
        ScheduleSettings("x", None, 2, 100, 99),
        ScheduleSettings("x", None, 2, 100, 2**31),
    ],
)
def test_edit_schedule_refuses_invalid_settings(schedule_settings: ScheduleSettings) -> None:
    with pytest.raises(ScheduleError):
        edit_schedule(make_schedule(), schedule_settings)


def test_edit_schedule_refuses_too_few_requests_for_a_run() -> None:
    schedule = make_schedule(make_model())
    with pytest.raises(ScheduleError) as raised:
        edit_schedule(schedule, replace(NIGHTLY, requests_per_run=2))
    assert list(raised.value.errors) == ["requests_per_run"]
    schedule.refresh_from_db()
    assert schedule.requests_per_run == 1000


def test_edit_schedule_renames_a_schedule_with_too_few_requests() -> None:
    schedule = make_schedule(make_model(), requests_per_run=2)
    edit_schedule(schedule, replace(NIGHTLY, name="Renamed", requests_per_run=2))
    schedule.refresh_from_db()
    assert (schedule.name, schedule.requests_per_run) == ("Renamed", 2)


def test_edit_schedule_of_a_deleted_model_is_not_compared_with_the_plan() -> None:
    model = make_model()
    schedule = make_schedule(model)
    model.delete()
    assert edit_schedule(schedule, replace(NIGHTLY, requests_per_run=2)).requests_per_run == 2


def test_create_schedule_needs_the_paid_requests_of_all_providers(settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 10
    models = [make_model(f"m-{name}", provider=make_provider(name=name, max_attempts=1)) for name in ("A", "B")]
    request = build_request(*models, trials=10, overrides={"max_turns": 3})
    proposed = get_new_schedule(request).defaults["requests_per_run"]
    assert isinstance(proposed, int)
    with pytest.raises(ScheduleError, match=f"up to {proposed} paid requests"):
        create_schedule(request, replace(NIGHTLY, requests_per_run=proposed - 1), owner=None)
    schedule = create_schedule(request, replace(NIGHTLY, requests_per_run=proposed), owner=None)
    assert launch_now(schedule.pk).request_cap == proposed


def test_get_new_schedule_proposes_the_requests_of_probes_too(settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 10
    request = build_request(make_model(provider=make_provider(max_attempts=1)), trials=10, methods=("auto",))
    proposed = get_new_schedule(request).defaults["requests_per_run"]
    assert isinstance(proposed, int)
    schedule = create_schedule(request, replace(NIGHTLY, requests_per_run=proposed), owner=None)
    assert launch_now(schedule.pk).request_cap == proposed


def test_edit_schedule_with_a_new_rhythm_moves_the_due_time() -> None:
    schedule = make_schedule()
    edit_schedule(schedule, NIGHTLY)
    assert (Schedule.objects.get().next_due_at.hour, Schedule.objects.get().next_due_at.minute) == (2, 0)


def test_edit_schedule_keeps_pause_and_due_time_that_were_set_meanwhile() -> None:
    stale, due = make_schedule(), datetime(2030, 1, 1, tzinfo=UTC)
    Schedule.objects.update(active=False, next_due_at=due, skip_reason="No budget.")
    saved = edit_schedule(stale, replace(NIGHTLY, every_hours=stale.every_hours, hour_utc=None))
    stored = Schedule.objects.get()
    assert (stored.name, stored.active, stored.next_due_at, stored.skip_reason) == ("Nightly", False, due, "No budget.")
    assert (saved.active, saved.next_due_at) == (False, due)


def test_edit_schedule_deleted_meanwhile_stays_deleted() -> None:
    stale = make_schedule()
    Schedule.objects.all().delete()
    with pytest.raises(ScheduleError, match="deleted meanwhile"):
        edit_schedule(stale, NIGHTLY)
    assert not Schedule.objects.exists()


def test_set_active_resumes_a_schedule_with_a_future_due_time() -> None:
    schedule = make_schedule(active=False)
    set_active(schedule, active=True)
    schedule.refresh_from_db()
    assert schedule.active
    assert schedule.next_due_at > datetime.now(UTC)


def test_set_active_uses_a_rhythm_that_was_changed_meanwhile() -> None:
    stale = make_schedule(every_hours=None, hour_utc=2)
    edit_schedule(stale, replace(NIGHTLY, hour_utc=5))
    set_active(stale, active=True)
    assert Schedule.objects.get().next_due_at.hour == 5


def test_compute_next_due_skips_missed_due_times() -> None:
    now = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
    hourly = Schedule(every_hours=5, next_due_at=now - timedelta(hours=11))
    assert compute_next_due(hourly, now) == now + timedelta(hours=4)
    assert compute_next_due(Schedule(every_hours=5, next_due_at=now), now) == now + timedelta(hours=5)
    nightly = Schedule(hour_utc=12, next_due_at=now - timedelta(days=5))
    assert compute_next_due(nightly, now) == datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def test_pin_baseline_refuses_other_and_unfinished_runs() -> None:
    schedule = make_schedule()
    first, second = make_run(schedule=schedule), make_run(schedule=schedule)
    assert pin_baseline(schedule, [first.pk, second.pk]) == 2
    for other in (make_run(), make_run(schedule=schedule, state="running")):
        with pytest.raises(ScheduleError):
            pin_baseline(schedule, [other.pk])
    assert schedule.baseline_runs.count() == 2
