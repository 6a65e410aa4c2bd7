"""Jobs that the scheduler process does at fixed intervals, such as the sweep and the launch of due schedules."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from toolbench.lab.interchange.queue import remove_orphaned_files
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import mark_uncomputable_stale
from toolbench.lab.operations.body_removal import RetentionJob
from toolbench.lab.runs.local_demo import launch_next_demo_run
from toolbench.lab.schedules.alerting import check_ended_runs
from toolbench.lab.schedules.canaries import check_canaries
from toolbench.lab.schedules.delivery import deliver_due_alerts
from toolbench.lab.schedules.launching import launch_due_schedules
from toolbench.lab.worker.background_jobs import CountPacing
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS
from toolbench.lab.worker.health import record_heartbeat
from toolbench.lab.worker.job_failures import record_failures
from toolbench.lab.worker.queue import request_heartbeats

logger = logging.getLogger(__name__)

DEMO_RUN_SECONDS = 2.0
SCHEDULE_SECONDS = 10.0
ALERT_SECONDS = 3.0
# Jobs also run when the scheduler starts. So after an update, cells that the old version could not compute are
# recomputed at once.
HOURLY_SECONDS = 3600.0
RETENTION_SECONDS = 60.0  # a call does nothing unless a daily pass is due; a long pass continues at the next call


@dataclass(slots=True)
class ScheduledJob:
    """A job that runs at a fixed interval, the first time at once.

    Attributes:
        name: the name under which /health/ shows failures of the job.
        action: does the work.
        seconds: the interval.
        due_at: the next time to run, in seconds of the schedule's clock.
    """

    name: str
    action: Callable[[], object]
    seconds: float
    due_at: float = 0.0


class JobSchedule:
    """Jobs with their next times. A failed job runs again when it is next due.

    Each failure is logged. It is also counted for /health/, unless the database is unavailable.
    """

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
            logger.warning("The database is unavailable: %s", error)


class PacedSweep:
    """Sweep of the scheduler, which recomputes counts only after pauses.

    A sweep that recomputes counts begins a pause, in which sweeps leave the counts out.
    """

    def __init__(self, pacing: CountPacing | None = None) -> None:
        self._pacing = pacing or CountPacing()

    def run(self) -> None:
        """Sweep once."""
        if not self._pacing.is_due:
            sweep(with_counts=False)
            return
        with self._pacing.measure():
            sweep()


def build_schedule() -> JobSchedule:
    """Build the schedule of the scheduler process."""
    return JobSchedule(
        (
            ScheduledJob("heartbeat", lambda: record_heartbeat("scheduler"), settings.HEARTBEAT_SECONDS),
            ScheduledJob("asking workers for a heartbeat", request_heartbeats, settings.HEARTBEAT_SECONDS),
            ScheduledJob("recomputing cells that could not be computed", mark_uncomputable_stale, HOURLY_SECONDS),
            ScheduledJob("removing files of ended imports", remove_orphaned_files, HOURLY_SECONDS),
            ScheduledJob("removing bodies of old trials", RetentionJob().run, RETENTION_SECONDS),
            ScheduledJob("sweeping", PacedSweep().run, settings.SWEEP_SECONDS),
            ScheduledJob("launching the demo run", launch_next_demo_run, DEMO_RUN_SECONDS),
            ScheduledJob("launching scheduled runs", launch_due_schedules, SCHEDULE_SECONDS),
            ScheduledJob("checking alert rules", check_ended_runs, ALERT_SECONDS),
            ScheduledJob("checking canaries of aliases", check_canaries, ALERT_SECONDS),
            ScheduledJob("delivering alerts", deliver_due_alerts, ALERT_SECONDS),
        )
    )
