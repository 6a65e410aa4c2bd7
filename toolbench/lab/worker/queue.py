"""Insertion of planned trials with one statement, and messages that notify the workers."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Field
from kombu.exceptions import OperationalError

from toolbench.celery import app
from toolbench.lab.models import Trial
from toolbench.lab.sql import load_statement

logger = logging.getLogger(__name__)
SESSION_TASK = "toolbench.lab.tasks.work_shift"
PROBE_TASK = "toolbench.lab.tasks.probe"
REPLAY_TASK = "toolbench.lab.tasks.replay"
HEARTBEAT_TASK = "toolbench.lab.tasks.beat"


def queue_trials(trials: Sequence[Trial]) -> None:
    """Insert trials as `bulk_create` would, without setting their ids. Each position must be unique in its run."""
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
    """Request a worker session for each provider. Call it after the commit."""
    for provider_id in sorted(set(provider_ids)):
        if not _send_task(SESSION_TASK, [provider_id], expires=settings.SESSION_SECONDS):
            return


def notify_workers_of_probes(probe_ids: Iterable[int]) -> None:
    """Request a worker for each probe. Call it after the commit."""
    for probe_id in probe_ids:
        if not _send_task(PROBE_TASK, [probe_id], expires=settings.SESSION_SECONDS):
            return


def notify_workers_of_replays(replay_ids: Iterable[int]) -> None:
    """Request a worker for each replay (what-if or re-judgement). Call it after the commit."""
    for replay_id in replay_ids:
        if not _send_task(REPLAY_TASK, [replay_id], expires=settings.SESSION_SECONDS):
            return


def request_heartbeat() -> None:
    """Request a heartbeat. Its arrival shows that a worker receives messages."""
    _send_task(HEARTBEAT_TASK, [], expires=settings.HEARTBEAT_SECONDS)


def _send_task(task: str, arguments: list[int], *, expires: float) -> bool:
    """Send a task; log and return False when the broker does not answer."""
    try:
        app.send_task(task, arguments, retry=False, expires=expires)
    except (OperationalError, OSError) as error:
        logger.warning("The broker does not answer, the sweep will notify the workers: %s", error)
        return False
    return True
