"""Telling the workers that a provider has work. A lost wake-up costs time only: the sweep makes it good."""

import logging
from collections.abc import Iterable

from django.conf import settings
from kombu.exceptions import OperationalError

from toolbench.celery import app

logger = logging.getLogger(__name__)

SHIFT = "toolbench.lab.tasks.work_shift"
PROBE = "toolbench.lab.tasks.probe"
REPLAY = "toolbench.lab.tasks.replay"
BEAT = "toolbench.lab.tasks.beat"


def wake(provider_ids: Iterable[int]) -> None:
    """Asks for a shift per provider. To be called after the commit."""
    for provider_id in sorted(set(provider_ids)):
        if not _send(SHIFT, [provider_id], expires=settings.SESSION_SECONDS):
            return


def wake_probes(probe_ids: Iterable[int]) -> None:
    """Asks for a worker per probe. To be called after the commit."""
    for probe_id in probe_ids:
        if not _send(PROBE, [probe_id], expires=settings.SESSION_SECONDS):
            return


def wake_replays(replay_ids: Iterable[int]) -> None:
    """Asks a worker per what-if or re-judgement. To be called after the commit."""
    for replay_id in replay_ids:
        if not _send(REPLAY, [replay_id], expires=settings.SESSION_SECONDS):
            return


def ask_for_a_beat() -> None:
    """Asks a worker to show that it hears the broker."""
    _send(BEAT, [], expires=settings.HEARTBEAT_SECONDS)


def _send(task: str, arguments: list[int], *, expires: float) -> bool:
    """False, and a line in the log, when the broker does not answer."""
    try:
        app.send_task(task, arguments, retry=False, expires=expires)
    except (OperationalError, OSError) as error:
        logger.warning("The broker does not answer, the sweep will wake the workers: %s", error)
        return False
    return True
