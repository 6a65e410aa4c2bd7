"""What Celery does: wake, distribute, tick. A task is an id and one verb; an exception of it is logged and counted for
/health/."""

import gc
from typing import Any

from celery.signals import worker_ready, worker_shutting_down

from toolbench.celery import app
from toolbench.lab.endpoints.probe_job import run_probe
from toolbench.lab.interchange.queue import REPLAY_KINDS
from toolbench.lab.maintenance import look, sweep
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.replays.queue import run_replay
from toolbench.lab.worker import heartbeat
from toolbench.lab.worker.job_failures import SESSION, recorded
from toolbench.lab.worker.notify import BEAT, PROBE, REPLAY, SHIFT
from toolbench.lab.worker.session_registry import Roster

ALLOCATIONS = 5_000  # between two looks of the collector; Python's own 700 are less than two trials in flight hold

roster = Roster(check_runs=look, sweep=sweep)


@worker_ready.connect
def keep_what_is_loaded(**_: Any) -> None:
    """The collector passes over what stays for good; a trial's objects mostly go before it looks."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)


@worker_shutting_down.connect
def stop_shifts(**_: Any) -> None:
    roster.stop()


@app.task(name=SHIFT)
def work_shift(provider_id: int) -> None:
    """One shift for the provider, unless this worker is at it already."""
    with recorded(SESSION, provider_id):
        roster.work(provider_id)


@app.task(name=PROBE)
def probe(probe_id: int) -> None:
    """Carries out one probe, unless another worker is at it."""
    with recorded("a probe"):
        run_probe(probe_id, roster.is_stopping, on_finished=decide_waiting_methods)


@app.task(name=REPLAY)
def replay(replay_id: int) -> None:
    """Work through a what-if, a re-judgement or an import, unless another worker is at it."""
    with recorded("a replay"):
        run_replay(replay_id, REPLAY_KINDS)


@app.task(name=BEAT)
def beat() -> None:
    """Shows that this worker hears the broker and reaches the database."""
    with recorded("heartbeat"):
        heartbeat.beat("worker")
