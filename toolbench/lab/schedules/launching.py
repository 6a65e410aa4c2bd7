"""Launches of the runs of schedules: at most one for each due time, even if several schedulers run."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from toolbench.lab.metrics.provider_budget import compute_month_start
from toolbench.lab.models import Run, Schedule
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.schedules.edit import compute_next_due, limit_request
from toolbench.lab.worker.database_thread import is_unavailable
from toolbench.lab.worker.job_failures import describe_internal_error, record_failures

MAX_REASON_CHARACTERS = 300


class SkippedError(Exception):
    """Raised if a run of a schedule is not launched; the message gives the reason."""


def launch_due_schedules() -> tuple[int, ...]:
    """Launch a run of every schedule that is due, and return the ids of the new runs.

    If a run cannot be launched, the schedule stores why it was skipped. An unexpected error is also logged and counted.
    In both cases, the other schedules are still processed.

    Raises:
        django.db.Error: the database is unavailable. Schedules that were not processed stay due.
    """
    run_ids = []
    for schedule_id in _list_due_ids(timezone.now()):
        with record_failures("launching scheduled runs"):
            try:
                run = _launch_if_due(schedule_id)
            except Exception as error:
                if not is_unavailable(error):  # otherwise the schedule stays due, and the next call launches its run
                    _skip_after_error(schedule_id, error)
                raise
            if run is not None:
                run_ids.append(run.pk)
    return tuple(run_ids)


def launch_now(schedule_id: int) -> Run:
    """Launch a run of the schedule now, even if the schedule is paused. Its due time does not change.

    Raises:
        SkippedError: an earlier run has not ended, the budget of the month or of a run is too small, or the plan cannot
            be launched.
        Schedule.DoesNotExist: there is no such schedule.
    """
    with transaction.atomic():
        return _launch_run(Schedule.objects.select_for_update().get(pk=schedule_id))


def count_requests_by_schedule(schedules: Iterable[Schedule]) -> dict[int, int]:
    """Return the number of requests that the runs of this calendar month (UTC) have reserved, by id of the schedule.

    Deleted runs count too. A schedule without a run in this month has no entry.
    """
    runs = Run.objects.filter(schedule__in=schedules, created_at__gte=compute_month_start()).order_by()
    return dict(runs.values_list("schedule_id").annotate(requests=Sum("requests_reserved")))


def _list_due_ids(now: datetime) -> list[int]:
    return list(Schedule.objects.filter(active=True, next_due_at__lte=now).order_by("pk").values_list("pk", flat=True))


def _launch_if_due(schedule_id: int) -> Run | None:
    """If a schedule is due, launch a run of it and set the next due time, in one transaction.

    Returns:
        The run; None if it was skipped, if another process is launching it, or if the schedule is no longer due.
    """
    with transaction.atomic():
        now = timezone.now()
        schedule = _lock_if_due(schedule_id, now)
        if schedule is None:
            return None
        run, reason = None, ""
        try:
            with transaction.atomic():
                run = _launch_run(schedule)
        except SkippedError as error:
            reason = str(error)
        _set_next_due(schedule, now, reason)
        return run


def _skip_after_error(schedule_id: int, error: Exception) -> None:
    """Store the error of a launch that was rolled back, and the next due time, if the schedule is still due."""
    with transaction.atomic():
        now = timezone.now()
        schedule = _lock_if_due(schedule_id, now)
        if schedule is not None:
            _set_next_due(schedule, now, describe_internal_error(error))


def _lock_if_due(schedule_id: int, now: datetime) -> Schedule | None:
    """Return the schedule and lock its row; None if another process has locked it, or if it is paused or not due."""
    due = Schedule.objects.select_for_update(skip_locked=True).filter(active=True, next_due_at__lte=now)
    return due.filter(pk=schedule_id).first()


def _set_next_due(schedule: Schedule, now: datetime, skip_reason: str) -> None:
    """Store the next due time of a schedule, and whether and why the run that was due was skipped.

    Args:
        schedule: the schedule, whose row is locked.
        now: the current time.
        skip_reason: why the run was skipped; "" if it was launched.
    """
    schedule.next_due_at = compute_next_due(schedule, now)
    schedule.skip_reason, schedule.skipped_at = skip_reason[:MAX_REASON_CHARACTERS], now if skip_reason else None
    schedule.save(update_fields=["next_due_at", "skip_reason", "skipped_at"])


def _launch_run(schedule: Schedule) -> Run:
    """Launch a run of a schedule whose row is locked.

    Raises:
        SkippedError: the run cannot be launched now.
    """
    _check_last_run(schedule)
    _check_month(schedule)
    try:
        request = limit_request(RunRequest.from_json(schedule.request), schedule.requests_per_run)
        request = replace(request, title=schedule.name)
        run = launch(request, owner=schedule.owner, confirmed_requests=schedule.requests_per_run)
    except LaunchError as error:
        raise SkippedError(f"The plan cannot be launched: {error}") from error
    except PaidRequestsUnconfirmedError as error:
        raise SkippedError(f"The budget of a run is too small: {error}") from error
    Run.objects.filter(pk=run.pk).update(schedule=schedule)
    return run


def _check_last_run(schedule: Schedule) -> None:
    open_runs = schedule.runs.filter(deleted_at=None).exclude(state__in=Run.ENDED)
    if (last := open_runs.order_by("-pk").first()) is not None:
        advice = " Resume or cancel it." if last.state == Run.State.PAUSED else ""
        raise SkippedError(f"Run {last.pk} has not ended: it is {last.get_state_display()}.{advice}")


def _check_month(schedule: Schedule) -> None:
    spent = count_requests_by_schedule([schedule]).get(schedule.pk, 0)
    if spent + schedule.requests_per_run > schedule.requests_per_month:
        raise SkippedError(
            f"The month's budget is too small: {spent:,} of {schedule.requests_per_month:,} requests are spent, "
            f"and a run may send {schedule.requests_per_run:,}."
        )
