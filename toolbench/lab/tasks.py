"""What Celery does: wake, distribute, tick. A task is an id and one verb."""

from typing import Any

from celery.signals import worker_shutting_down

from toolbench.celery import app
from toolbench.lab import liveness
from toolbench.lab.roster import Roster
from toolbench.lab.waking import BEAT, SHIFT

roster = Roster()


@worker_shutting_down.connect
def stop_shifts(**_: Any) -> None:
    roster.stop()


@app.task(name=SHIFT)
def work_shift(provider_id: int) -> None:
    """One shift for the provider, unless this worker is at it already."""
    roster.work(provider_id)


@app.task(name=BEAT)
def beat() -> None:
    """Shows that this worker hears the broker and reaches the database."""
    liveness.beat("worker")
