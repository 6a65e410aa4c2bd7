"""Celery tasks. Their exceptions are logged, and counted for /health/ unless the database is unavailable."""

from contextlib import suppress
from typing import Any

from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.db import DatabaseError, connection

from toolbench.celery import app
from toolbench.garbage_collection import collect_rarely, freeze_loaded_objects
from toolbench.lab.endpoints.probe_job import run_probe
from toolbench.lab.interchange.queue import REPLAY_KINDS
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.replays.queue import run_replay
from toolbench.lab.worker import health
from toolbench.lab.worker.job_failures import SESSION_JOB, record_failures
from toolbench.lab.worker.queue import (
    HEARTBEAT_TASK,
    PROBE_TASK,
    REPLAY_TASK,
    SESSION_TASK,
    forward_probe,
    forward_replay,
    forward_session,
)
from toolbench.lab.worker.session_registry import SessionRegistry

session_registry = SessionRegistry(check_runs=check_runs, sweep=sweep)


@worker_ready.connect
def set_up_garbage_collection(**_: Any) -> None:
    """Make Python collect garbage less often in this worker."""
    freeze_loaded_objects()
    collect_rarely()


@worker_ready.connect
def record_first_heartbeat(**_: Any) -> None:
    """Store the first heartbeat, so that a busy worker can ask this one for help; ignore an unavailable database."""
    with suppress(DatabaseError):
        health.record_heartbeat("worker")
    connection.close()


@worker_shutting_down.connect
def stop_sessions(**_: Any) -> None:
    """Ask the worker sessions of this process to stop when Celery shuts down."""
    session_registry.stop()


@worker_shutdown.connect
def withdraw_heartbeat(**_: Any) -> None:
    """Delete the heartbeat of this worker after its sessions have ended; ignore an unavailable database."""
    with suppress(DatabaseError):
        health.remove_heartbeat("worker")


@app.task(name=SESSION_TASK)
def run_session_task(provider_id: int) -> None:
    """Run a worker session, unless this process runs one for the provider or another host has its local server."""
    with record_failures(SESSION_JOB, provider_id):
        if not forward_session(provider_id):
            connection.close()  # a session has connections of its own
            session_registry.run_session(provider_id)


@app.task(name=PROBE_TASK)
def run_probe_task(probe_id: int) -> None:
    """Run one probe, unless it is done, another worker runs it or another host has the local server of the model."""
    with record_failures("a probe"):
        if not forward_probe(probe_id):
            run_probe(probe_id, session_registry.is_stopping, on_finished=decide_waiting_methods)


@app.task(name=REPLAY_TASK)
def run_replay_task(replay_id: int) -> None:
    """Process one what-if, re-judging or import, unless it is done or another host has the file to import."""
    with record_failures("a replay"):
        if not forward_replay(replay_id):
            run_replay(replay_id, REPLAY_KINDS)


@app.task(name=HEARTBEAT_TASK)
def record_heartbeat_task() -> None:
    """Store a heartbeat, which shows that this worker receives messages and reaches the database."""
    with record_failures("heartbeat"):
        health.record_heartbeat("worker")
