"""Shares of a provider's slots for the workers that claim its trials at the same time.

A worker that uses its whole core asks for another one. Each then claims up to its share, so both cores work.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import connection

from toolbench.lab.models import ClaimingWorker
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import TEXT_CPU
from toolbench.lab.worker.claims import CONCURRENCY_LIMIT, has_queued_trials
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.health import build_process_name, count_live_workers
from toolbench.lab.worker.queue import notify_workers
from toolbench.lab.worker.slots import Slots

SHARE_SECONDS = 0.5  # pause between two computations of the share
SHARE_TIMEOUT_SECONDS = 10.0  # time after which a worker that was not heard of has no share
BUSY_CPU = 0.75  # share of a core; a process that uses at least this share for BUSY_INTERVALS asks for another worker
BUSY_INTERVALS = 2
MAX_ASK_PAUSE_SECONDS = 10.0  # longest pause between two requests; it doubles while no worker joins

_SHARE_SLOTS = load_statement("worker/share_slots", limit=CONCURRENCY_LIMIT)


class SlotShare(NamedTuple):
    """A worker's share of the slots of a provider.

    Attributes:
        worker_count: number of workers that claim trials of the provider.
        slots: most slots that this worker may hold, None for all. The shares add up to the concurrency limit, or to a
            little more since they are rounded up; claims keep to the limit.
    """

    worker_count: int = 1
    slots: int | None = None


def measure_cpu_seconds() -> float:
    """Return the CPU time of this process in seconds, without that for search texts: they can wait for idle time."""
    return time.process_time() - TEXT_CPU.seconds


class CpuWatch:
    """Watch on how much of a core this process uses. Threads that wait for the interpreter's lock use none.

    Args:
        cpu_clock: returns the seconds of CPU that count.
        clock: returns seconds.
    """

    def __init__(
        self, cpu_clock: Callable[[], float] = measure_cpu_seconds, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_clock, self._clock = cpu_clock, clock
        self._cpu_seconds, self._measured_at = cpu_clock(), clock()
        self._busy_intervals = 0

    def is_busy(self) -> bool:
        """Return whether each of the last BUSY_INTERVALS intervals between two calls used BUSY_CPU or more.

        The first interval begins at the creation.
        """
        cpu_seconds, now = self._cpu_clock(), self._clock()
        is_busy = cpu_seconds - self._cpu_seconds >= BUSY_CPU * (now - self._measured_at)
        self._cpu_seconds, self._measured_at = cpu_seconds, now
        self._busy_intervals = self._busy_intervals + 1 if is_busy else 0
        return self._busy_intervals >= BUSY_INTERVALS


class SlotSharing:
    """Job of a worker session: it follows the session's share, and asks for another worker while this one is busy."""

    def __init__(self, provider_id: int, database: DatabaseThread, slots: Slots) -> None:
        self._provider_id = provider_id
        self._worker_name = build_process_name("worker")
        self._database = database
        self._slots = slots
        self._can_claim = asyncio.Event()
        self._has_stopped = False

    def begin(self) -> None:
        """Begin to share: the session has found out that it can use the provider."""
        self._can_claim.set()

    async def run(self) -> None:
        """Follow the share from `begin` until `stop`."""
        await self._can_claim.wait()
        cpu_watch, pause, ask_at, share = CpuWatch(), SHARE_SECONDS, 0.0, SlotShare()
        while not self._has_stopped:
            with suppress(*UNAVAILABLE_ERRORS):
                known_count, share = share.worker_count, await self._database.run(self.update)
                self._slots.set_share(share.slots)
                if share.worker_count > known_count:
                    pause = SHARE_SECONDS
            await asyncio.sleep(SHARE_SECONDS)
            if cpu_watch.is_busy() and not self._has_stopped and time.monotonic() >= ask_at:
                ask_at, pause = time.monotonic() + pause, min(2 * pause, MAX_ASK_PAUSE_SECONDS)
                with suppress(*UNAVAILABLE_ERRORS):
                    await self._database.run(request_another_worker, self._provider_id, share.worker_count)

    def stop(self) -> None:
        """End the job, since the session claims no more trials. Call `give_up` in the database thread then."""
        self._has_stopped = True

    def update(self) -> SlotShare:
        """Record that this worker claims trials of the provider, and return its share of the slots."""
        parameters: dict[str, Any] = {
            "provider": self._provider_id,
            "worker": self._worker_name,
            "timeout": SHARE_TIMEOUT_SECONDS,
        }
        with connection.cursor() as cursor:
            cursor.execute(_SHARE_SLOTS, parameters)
            row = cursor.fetchone()
        return SlotShare(*row) if row else SlotShare()  # without a row, the provider was deleted

    def give_up(self) -> None:
        """Record that this worker no longer claims trials of the provider."""
        ClaimingWorker.objects.filter(provider=self._provider_id, worker=self._worker_name).delete()


def request_another_worker(provider_id: int, worker_count: int) -> None:
    """Notify the workers if more are alive than the `worker_count` that claim trials, and trials are queued."""
    if count_live_workers() > worker_count and has_queued_trials(provider_id):
        notify_workers([provider_id])
