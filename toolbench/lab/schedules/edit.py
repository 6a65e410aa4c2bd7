"""Creation and changes of schedules, their due times and their baselines."""

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Run, Schedule
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import MAX_RUN_LIMIT, LaunchError, Plan, RunRequest
from toolbench.lab.runs.repeat import RESEND_PURPOSE

MAX_EVERY_HOURS = 24 * 31
MAX_BASELINE_RUNS = 50


class ScheduleError(InvalidFieldsError):
    """Raised if a schedule or its baseline cannot be saved."""


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Settings of a schedule that a person enters.

    Attributes:
        every_hours: hours between two runs; None for a nightly schedule.
        hour_utc: hour of the nightly run, from 0 to 23; None if `every_hours` is set.
        requests_per_run: request limit of each run.
        requests_per_month: request limit of all runs of a calendar month (UTC).
    """

    name: str
    every_hours: int | None
    hour_utc: int | None
    requests_per_run: int
    requests_per_month: int


def create_schedule(
    source: Run | RunRequest, settings: ScheduleSettings, *, owner: AbstractBaseUser | None
) -> Schedule:
    """Create a schedule.

    Args:
        source: the plan of the schedule, or a run whose plan it repeats. A finished run becomes the baseline.
        settings: the settings of the schedule.
        owner: the account for which the runs are launched; None without sign-in.

    Raises:
        ScheduleError: the plan cannot be launched, or a setting is wrong.
    """
    _check_settings(settings)
    request, plan = build_schedule_plan(source)
    _check_run_budget(settings, request, plan)
    with transaction.atomic():
        schedule = Schedule(request=request.to_json(), owner_id=owner.pk if owner else None)
        _apply_settings(schedule, settings)
        schedule.save()
        if isinstance(source, Run) and source.state == Run.State.FINISHED:
            schedule.baseline_runs.add(source)
    return schedule


def edit_schedule(schedule: Schedule, settings: ScheduleSettings) -> Schedule:
    """Change the settings of a schedule, and its next due time if the rhythm has changed; return the saved schedule.

    The request limit of a run is compared with the plan only if the limit changes and the plan can be launched now.

    Raises:
        ScheduleError: a setting is wrong, or the schedule was deleted.
    """
    _check_settings(settings)
    if settings.requests_per_run != schedule.requests_per_run:
        with suppress(LaunchError):
            request = RunRequest.from_json(schedule.request)
            _check_run_budget(settings, request, build_plan(request))
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(pk=schedule.pk).first()
        if row is None:
            raise ScheduleError({"": ["This schedule was deleted meanwhile. Add it as a new one."]})
        _apply_settings(row, settings)
        row.save(update_fields=[*asdict(settings), "next_due_at"])
    return row


def set_active(schedule: Schedule, *, active: bool) -> None:
    """Pause or activate a schedule.

    Due times up to now are skipped, and the reason why the last run was skipped is cleared.

    Raises:
        Schedule.DoesNotExist: the schedule was deleted.
    """
    with transaction.atomic():
        row = Schedule.objects.select_for_update().get(pk=schedule.pk)
        row.active, row.next_due_at, row.skip_reason = active, compute_next_due(row, timezone.now()), ""
        row.save(update_fields=["active", "next_due_at", "skip_reason"])


def pin_baseline(schedule: Schedule, run_ids: list[int]) -> int:
    """Set the baseline of a schedule to these runs and return their number.

    Raises:
        ScheduleError: a run was deleted, is not finished, or belongs neither to the schedule nor to its present
            baseline; or there are more than MAX_BASELINE_RUNS runs.
    """
    finished = Run.objects.filter(deleted_at=None, state=Run.State.FINISHED, pk__in=run_ids)
    allowed = finished.filter(schedule=schedule) | finished.filter(pk__in=schedule.baseline_runs.values("pk"))
    runs = list(allowed.distinct())
    if len(runs) != len(set(run_ids)):
        sentence = "A baseline consists of finished runs of this schedule, or of its present baseline."
        raise ScheduleError({"baseline": [sentence]})
    if len(runs) > MAX_BASELINE_RUNS:
        raise ScheduleError({"baseline": [f"A baseline has at most {MAX_BASELINE_RUNS} runs."]})
    schedule.baseline_runs.set(runs)
    return len(runs)


def compute_next_due(schedule: Schedule, now: datetime) -> datetime:
    """Return the first due time of a schedule after `now`. Missed due times are skipped.

    If the schedule has an interval, a due time less than 1 s after `now` is moved to 1 s after `now`.
    """
    if schedule.hour_utc is not None:
        due = now.astimezone(UTC).replace(hour=schedule.hour_utc, minute=0, second=0, microsecond=0)
        return due if due > now else due + timedelta(days=1)
    interval = timedelta(hours=schedule.every_hours or 1)
    last = schedule.next_due_at or now
    missed = max(0, (now - last) // interval)
    return max(last + (missed + 1) * interval, now + timedelta(seconds=1)) if last <= now else last


def _apply_settings(schedule: Schedule, settings: ScheduleSettings) -> None:
    is_new_rhythm = (schedule.every_hours, schedule.hour_utc) != (settings.every_hours, settings.hour_utc)
    schedule.name, schedule.every_hours, schedule.hour_utc = settings.name, settings.every_hours, settings.hour_utc
    schedule.requests_per_run, schedule.requests_per_month = settings.requests_per_run, settings.requests_per_month
    if is_new_rhythm:
        schedule.next_due_at = timezone.now()
        schedule.next_due_at = compute_next_due(schedule, schedule.next_due_at)


def _check_settings(settings: ScheduleSettings) -> None:
    errors: dict[str, list[str]] = {}
    if not settings.name:
        errors["name"] = ["Name the schedule."]
    if settings.every_hours is not None and not 1 <= settings.every_hours <= MAX_EVERY_HOURS:
        errors["every_hours"] = [f"Enter 1 to {MAX_EVERY_HOURS} hours."]
    if settings.hour_utc is not None and not 0 <= settings.hour_utc <= 23:
        errors["hour_utc"] = ["Enter an hour from 0 to 23."]
    if (settings.every_hours is None) == (settings.hour_utc is None):
        errors["every_hours"] = ["Enter either a number of hours or an hour (UTC), not both."]
    if not 1 <= settings.requests_per_run <= MAX_RUN_LIMIT:
        errors["requests_per_run"] = [f"Enter 1 to {MAX_RUN_LIMIT:,} requests."]
    if settings.requests_per_month < settings.requests_per_run:
        errors["requests_per_month"] = ["Enter at least the requests of one run."]
    if settings.requests_per_month > MAX_RUN_LIMIT:
        errors["requests_per_month"] = [f"Enter at most {MAX_RUN_LIMIT:,} requests."]
    if errors:
        raise ScheduleError(errors)


def _check_run_budget(settings: ScheduleSettings, request: RunRequest, plan: Plan) -> None:
    """Check that a run with the request limit of `settings` can be launched and need not pause.

    Args:
        settings: the settings of the schedule.
        request: the request of the schedule.
        plan: the plan of `request`, without the limit of `settings`.

    Raises:
        ScheduleError: the limit is too low.
    """
    if settings.requests_per_run < plan.least_requests:
        sentence = f"A run sends {plan.least_requests:,} requests or more: with fewer, every run would pause."
        raise ScheduleError({"requests_per_run": [sentence]})
    launched = build_plan(limit_request(request, settings.requests_per_run))
    if launched.needs_confirmation and launched.max_paid_requests > settings.requests_per_run:
        raise ScheduleError(
            {
                "requests_per_run": [
                    f"A run and its probes may send up to {plan.max_paid_requests:,} paid requests: with fewer, no run "
                    "would be launched."
                ]
            }
        )


def limit_request(request: RunRequest, requests_per_run: int) -> RunRequest:
    """Return the request with `requests_per_run` as its request limit, unless it has a lower one."""
    return replace(request, request_cap=min(request.request_cap or requests_per_run, requests_per_run))


def build_schedule_plan(source: Run | RunRequest) -> tuple[RunRequest, Plan]:
    """Return the request that a schedule stores, and the plan of a run launched now.

    The seed of the request is removed, so that every run of the schedule gets a new one. Purpose and title are removed
    too.

    Args:
        source: a request, or a run whose request is used.

    Raises:
        ScheduleError: the run was imported, is of the playground, repeats a single trial, or has no stored request; or
            the plan cannot be launched now.
    """
    try:
        original = _read_run_request(source) if isinstance(source, Run) else source
        request = replace(original, seed=None, purpose="", title="")
        return request, build_plan(request)
    except LaunchError as error:
        raise ScheduleError({"": [f"The plan cannot be launched now. {error}"]}) from error


def _read_run_request(run: Run) -> RunRequest:
    """Return the request with which a run was launched.

    Raises:
        ScheduleError: runs of this kind cannot be scheduled.
        LaunchError: the stored request has unknown or wrong fields.
    """
    if run.imported:
        raise ScheduleError(
            {"": ["The run was imported, so it has no provider here. Launch a new run and schedule that."]}
        )
    if run.purpose == Run.PLAYGROUND:
        sentence = (
            "Trends leave out runs of the playground. Save the conversation as a test case, run it and schedule "
            "that run."
        )
        raise ScheduleError({"": [sentence]})
    if run.purpose == RESEND_PURPOSE or not run.request:
        raise ScheduleError({"": ["The run repeats a single trial and has no plan. Schedule the original run."]})
    return RunRequest.from_json(run.request)
