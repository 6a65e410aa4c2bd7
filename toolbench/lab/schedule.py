"""Jobs that run regularly: the sweep, heartbeats, the demo run of the home page."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from toolbench.lab.interchange.queue import remove_orphaned_files
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import retry_set_aside
from toolbench.lab.runs.local_demo import launch_next_demo_run
from toolbench.lab.schedules.alerting import check_ended_runs
from toolbench.lab.schedules.delivery import deliver_due_alerts
from toolbench.lab.schedules.launching import launch_due_schedules
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS
from toolbench.lab.worker.health import record_heartbeat
from toolbench.lab.worker.job_failures import record_failures
from toolbench.lab.worker.queue import request_heartbeat

logger = logging.getLogger(__name__)

DEMO_RUN_SECONDS = 2.0
SCHEDULE_SECONDS = 10.0
ALERT_SECONDS = 3.0
HOURLY_SECONDS = 3600.0  # and at every start, so that an update tries again what it mended


@dataclass(slots=True)
class ScheduledJob:
    """A job that runs every `seconds`, the first time at once. If it fails, `name` stands on /health/."""

    name: str
    action: Callable[[], object]
    seconds: float
    due_at: float = 0.0


class JobSchedule:
    """Runs jobs when they are due. A job that fails is logged, counted and run again at its next time."""

    def __init__(self, jobs: tuple[ScheduledJob, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.jobs = jobs
        self._clock = clock

    def tick(self) -> float:
        """Run the jobs that are due and return the seconds until the next one."""
        for job in self.jobs:
            if job.due_at <= self._clock():
                job.due_at = self._clock() + job.seconds
                self._run_job(job)
        return max(0.0, min(job.due_at for job in self.jobs) - self._clock())

    def _run_job(self, job: ScheduledJob) -> None:
        try:
            with record_failures(job.name):
                job.action()
        except UNAVAILABLE_ERRORS as error:
            connection.close()
            logger.warning("The database is away: %s", error)


def build_schedule() -> JobSchedule:
    """Build the schedule of the scheduler process."""
    return JobSchedule(
        (
            ScheduledJob("heartbeat", lambda: record_heartbeat("scheduler"), settings.HEARTBEAT_SECONDS),
            ScheduledJob("asking workers for a heartbeat", request_heartbeat, settings.HEARTBEAT_SECONDS),
            ScheduledJob("retrying cells that were set aside", retry_set_aside, HOURLY_SECONDS),
            ScheduledJob("removing files of ended imports", remove_orphaned_files, HOURLY_SECONDS),
            ScheduledJob("sweeping", sweep, settings.SWEEP_SECONDS),
            ScheduledJob("preparing the first page's run", launch_next_demo_run, DEMO_RUN_SECONDS),
            ScheduledJob("launching scheduled runs", launch_due_schedules, SCHEDULE_SECONDS),
            ScheduledJob("checking alert rules", check_ended_runs, ALERT_SECONDS),
            ScheduledJob("delivering alerts", deliver_due_alerts, ALERT_SECONDS),
        )
    )
