"""Celery tasks. A task gets one id and calls one function; its exceptions are logged and counted for /health/."""

import gc
from typing import Any

from celery.signals import worker_ready, worker_shutting_down

from toolbench.celery import app
from toolbench.lab.endpoints.probe_job import run_probe
from toolbench.lab.interchange.queue import REPLAY_KINDS
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.replays.queue import run_replay
from toolbench.lab.worker import health
from toolbench.lab.worker.job_failures import SESSION_JOB, record_failures
from toolbench.lab.worker.queue import HEARTBEAT_TASK, PROBE_TASK, REPLAY_TASK, SESSION_TASK
from toolbench.lab.worker.session_registry import SessionRegistry

# Allocations between two garbage collections; two trials in flight hold more objects than Python's default of 700.
GC_ALLOCATION_THRESHOLD = 5_000

session_registry = SessionRegistry(check_runs=check_runs, sweep=sweep)


@worker_ready.connect
def freeze_loaded_objects(**_: Any) -> None:
    """Exclude objects that stay for good from garbage collection, and collect less often.

    Most objects of a trial are gone before the collector runs.
    """
    gc.freeze()
    gc.set_threshold(GC_ALLOCATION_THRESHOLD)


@worker_shutting_down.connect
def stop_sessions(**_: Any) -> None:
    """Make worker sessions stop when Celery shuts down."""
    session_registry.stop()


@app.task(name=SESSION_TASK)
def work_shift(provider_id: int) -> None:
    """Run one worker session for the provider, unless this worker runs one already."""
    with record_failures(SESSION_JOB, provider_id):
        session_registry.run_session(provider_id)


@app.task(name=PROBE_TASK)
def probe(probe_id: int) -> None:
    """Run one probe, unless another worker runs it."""
    with record_failures("a probe"):
        run_probe(probe_id, session_registry.is_stopping, on_finished=decide_waiting_methods)


@app.task(name=REPLAY_TASK)
def replay(replay_id: int) -> None:
    """Process a what-if, a re-judgement or an import, unless another worker does."""
    with record_failures("a replay"):
        run_replay(replay_id, REPLAY_KINDS)


@app.task(name=HEARTBEAT_TASK)
def beat() -> None:
    """Store a heartbeat: this worker receives messages and reaches the database."""
    with record_failures("heartbeat"):
        health.record_heartbeat("worker")
