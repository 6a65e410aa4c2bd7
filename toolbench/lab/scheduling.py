"""What ticks while Toolbench runs: the sweep, signs of life, the first page's own run."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from toolbench.lab.processes.database_thread import AWAY
from toolbench.lab.processes.liveness import beat
from toolbench.lab.processes.waking import ask_for_a_beat
from toolbench.lab.runs.local_run import ensure_local_run
from toolbench.lab.shifts.sweeping import sweep

logger = logging.getLogger(__name__)

LOCAL_RUN_SECONDS = 2.0


@dataclass(slots=True)
class Job:
    """Something done every so many seconds; due at once the first time."""

    verb: Callable[[], object]
    seconds: float
    due: float = 0.0


class Schedule:
    """`tick` does what is due and returns at once. A job that fails is logged and done again in its turn."""

    def __init__(self, jobs: tuple[Job, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._clock = clock

    def tick(self) -> float:
        """Returns the seconds until the next job."""
        for job in self._jobs:
            if job.due <= self._clock():
                job.due = self._clock() + job.seconds
                self._do(job)
        return max(0.0, min(job.due for job in self._jobs) - self._clock())

    def _do(self, job: Job) -> None:
        try:
            job.verb()
        except AWAY as error:
            connection.close()
            logger.warning("The database is away: %s", error)
        except Exception:
            logger.exception("A periodic job failed")


def standing_schedule() -> Schedule:
    return Schedule(
        (
            Job(lambda: beat("scheduler"), settings.HEARTBEAT_SECONDS),
            Job(ask_for_a_beat, settings.HEARTBEAT_SECONDS),
            Job(sweep, settings.SWEEP_SECONDS),
            Job(ensure_local_run, LOCAL_RUN_SECONDS),
        )
    )
