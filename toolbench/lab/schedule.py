"""What ticks while Toolbench runs: the sweep, signs of life, the first page's own run."""

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
from toolbench.lab.worker.database_thread import AWAY
from toolbench.lab.worker.heartbeat import beat
from toolbench.lab.worker.job_failures import recorded
from toolbench.lab.worker.notify import ask_for_a_beat

logger = logging.getLogger(__name__)

LOCAL_RUN_SECONDS = 2.0
RETRY_SECONDS = 3600.0  # and at every start, so that an update tries again what it mended


@dataclass(slots=True)
class Job:
    """Something done every so many seconds; due at once the first time. `name` stands on /health/ when it fails."""

    name: str
    verb: Callable[[], object]
    seconds: float
    due: float = 0.0


class Schedule:
    """`tick` does what is due and returns at once. A job that fails is logged, counted and done again in its turn."""

    def __init__(self, jobs: tuple[Job, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.jobs = jobs
        self._clock = clock

    def tick(self) -> float:
        """Returns the seconds until the next job."""
        for job in self.jobs:
            if job.due <= self._clock():
                job.due = self._clock() + job.seconds
                self._do(job)
        return max(0.0, min(job.due for job in self.jobs) - self._clock())

    def _do(self, job: Job) -> None:
        try:
            with recorded(job.name):
                job.verb()
        except AWAY as error:
            connection.close()
            logger.warning("The database is away: %s", error)


def standing_schedule() -> Schedule:
    return Schedule(
        (
            Job("heartbeat", lambda: beat("scheduler"), settings.HEARTBEAT_SECONDS),
            Job("asking workers for a heartbeat", ask_for_a_beat, settings.HEARTBEAT_SECONDS),
            Job("retrying cells that were set aside", retry_set_aside, RETRY_SECONDS),
            Job("removing files of ended imports", remove_orphaned_files, RETRY_SECONDS),
            Job("sweeping", sweep, settings.SWEEP_SECONDS),
            Job("preparing the first page's run", launch_next_demo_run, LOCAL_RUN_SECONDS),
        )
    )
