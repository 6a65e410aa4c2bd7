"""Notify workers of queued work. A lost message only delays the work until the next sweep."""

import logging
from collections.abc import Iterable

from django.conf import settings
from kombu.exceptions import OperationalError

from toolbench.celery import app

logger = logging.getLogger(__name__)

SESSION_TASK = "toolbench.lab.tasks.work_shift"
PROBE_TASK = "toolbench.lab.tasks.probe"
REPLAY_TASK = "toolbench.lab.tasks.replay"
HEARTBEAT_TASK = "toolbench.lab.tasks.beat"


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
    """Request a worker for each what-if or re-judgement. Call it after the commit."""
    for replay_id in replay_ids:
        if not _send_task(REPLAY_TASK, [replay_id], expires=settings.SESSION_SECONDS):
            return


def request_heartbeat() -> None:
    """Request a heartbeat that shows that a worker receives messages."""
    _send_task(HEARTBEAT_TASK, [], expires=settings.HEARTBEAT_SECONDS)


def _send_task(task: str, arguments: list[int], *, expires: float) -> bool:
    """Send a task; log and return False when the broker does not answer."""
    try:
        app.send_task(task, arguments, retry=False, expires=expires)
    except (OperationalError, OSError) as error:
        logger.warning("The broker does not answer, the sweep will wake the workers: %s", error)
        return False
    return True
