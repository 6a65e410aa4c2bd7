"""Insertion of planned trials with one statement, and messages that notify the workers."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Field
from kombu.exceptions import OperationalError

from toolbench.celery import app, build_host_queue
from toolbench.lab.models import Probe, Replay, Trial
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.health import count_live_workers, is_other_live_host
from toolbench.lab.worker.local_servers import find_serving_host

logger = logging.getLogger(__name__)
SESSION_TASK = "toolbench.lab.tasks.work_shift"
PROBE_TASK = "toolbench.lab.tasks.probe"
REPLAY_TASK = "toolbench.lab.tasks.replay"
HEARTBEAT_TASK = "toolbench.lab.tasks.beat"
# Celery compares the expiry of a message, a time by the sender's clock, with the clock of the worker. This difference
# of the two clocks is added to each expiry, so that a worker whose clock is ahead does not discard every message.
MAX_CLOCK_DIFFERENCE_SECONDS = 3600.0


def queue_trials(trials: Sequence[Trial]) -> None:
    """Insert trials as `bulk_create` would, but leave their ids unset.

    The positions are always sent as an array, even for one trial, so that the statement has a row for each trial. Other
    values that all trials share are sent once.
    """
    if not trials:
        return
    columns = {
        field: [field.pre_save(trial, add=True) for trial in trials]
        for field in Trial._meta.concrete_fields
        if not field.primary_key
    }
    shared_values = {
        field: values[0]
        for field, values in columns.items()
        if field.name != "position" and values.count(values[0]) == len(values)
    }
    differing = {field: values for field, values in columns.items() if field not in shared_values}
    values_sql = ", ".join(
        f"%s::{_get_column_type(field)}" if field in shared_values else f"row.{_quote_column(field)}"
        for field in columns
    )
    arrays = ", ".join(f"%s::{_get_column_type(field)}[]" for field in differing)
    insert = load_statement(
        "worker/queue_trials",
        columns=", ".join(map(_quote_column, columns)),
        values=values_sql,
        arrays=arrays,
        differing=", ".join(map(_quote_column, differing)),
    )
    constants = [field.get_db_prep_save(value, connection) for field, value in shared_values.items()]
    lists = [[field.get_db_prep_save(value, connection) for value in values] for field, values in differing.items()]
    with connection.cursor() as cursor:
        cursor.execute(insert, [*constants, *lists])


def _get_column_type(field: "Field[Any, Any]") -> str:
    column_type = field.db_type(connection)
    assert column_type is not None
    return column_type


def _quote_column(field: "Field[Any, Any]") -> str:
    return f'"{field.column}"'


def notify_workers(provider_ids: Iterable[int]) -> None:
    """Request a worker session for each provider. Call it after the commit of the trials.

    If the broker does not answer, the remaining providers are skipped; the sweep requests their sessions.
    """
    for provider_id in sorted(set(provider_ids)):
        if not _send_task(SESSION_TASK, [provider_id], expires=settings.SESSION_SECONDS):
            return


def notify_workers_of_probes(probe_ids: Iterable[int]) -> None:
    """Request a worker for each probe. Call it after the commit of the probes."""
    for probe_id in probe_ids:
        if not _send_task(PROBE_TASK, [probe_id], expires=settings.SESSION_SECONDS):
            return


def notify_workers_of_replays(replay_ids: Iterable[int]) -> None:
    """Request a worker for each replay (what-if, re-judging or import). Call it after the commit of the replays."""
    for replay_id in replay_ids:
        if not _send_task(REPLAY_TASK, [replay_id], expires=settings.SESSION_SECONDS):
            return


def forward_session(provider_id: int) -> bool:
    """Pass the request for a session on to the only host whose workers reach the provider's local server.

    Returns:
        Whether another host has to run the session; also True if the broker does not answer, since the sweep requests
        the session again. False if it has to run here.
    """
    return _forward(SESSION_TASK, provider_id, find_serving_host(provider_id))


def forward_probe(probe_id: int) -> bool:
    """Pass a probe on, as `forward_session` does."""
    provider_id = Probe.objects.filter(pk=probe_id).values_list("provider_id", flat=True).first()
    return provider_id is not None and _forward(PROBE_TASK, probe_id, find_serving_host(provider_id))


def forward_replay(replay_id: int) -> bool:
    """Pass an import on to the host that has its file, as `forward_session` does. All other replays run here."""
    row = Replay.objects.filter(pk=replay_id, kind=Replay.IMPORT).first()
    return row is not None and is_other_live_host(row.file_host) and _forward(REPLAY_TASK, replay_id, row.file_host)


def _forward(task: str, argument: int, host: str) -> bool:
    """Send the task to the workers of a host; send nothing if `host` is "".

    Returns:
        Whether there is a host; True even if the broker does not answer.
    """
    if not host:
        return False
    _send_task(task, [argument], expires=settings.SESSION_SECONDS, queue=build_host_queue(host))
    return True


def request_heartbeats() -> None:
    """Request as many heartbeats as there are live workers, at least one.

    Their arrival shows that workers receive messages. A message reaches one worker; the broker serves waiting workers
    in turn.
    """
    for _ in range(max(1, count_live_workers())):
        if not _send_task(HEARTBEAT_TASK, [], expires=settings.HEARTBEAT_SECONDS):
            return


def _send_task(task: str, arguments: list[int], *, expires: float, queue: str | None = None) -> bool:
    """Send a task; log and return False when the broker does not answer.

    Args:
        task: name of the task.
        arguments: arguments of the task.
        expires: seconds for which the message is of use. A worker discards it MAX_CLOCK_DIFFERENCE_SECONDS after that.
        queue: None for the queue of all workers.
    """
    expires += MAX_CLOCK_DIFFERENCE_SECONDS
    try:
        app.send_task(task, arguments, retry=False, expires=expires, queue=queue)
    except (OperationalError, OSError) as error:
        logger.warning("The broker does not answer, the sweep will notify the workers: %s", error)
        return False
    return True
