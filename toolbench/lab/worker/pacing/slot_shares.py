"""Shares of a provider's slots for the workers that claim its trials at the same time.

A worker that keeps a core busy requests another worker. Each worker then claims up to its share, so that several cores
are used.
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
SHARE_TIMEOUT_SECONDS = 10.0  # a worker that has not computed its share for this time is not counted by the others
# A process that uses at least this fraction of a core in each of BUSY_INTERVALS successive intervals requests another
# worker.
BUSY_CPU = 0.75
BUSY_INTERVALS = 2
MAX_ASK_PAUSE_SECONDS = 10.0  # longest pause between two such requests; the pause doubles while no worker joins

_SHARE_SLOTS = load_statement("worker/share_slots", limit=CONCURRENCY_LIMIT)


class SlotShare(NamedTuple):
    """A worker's share of the slots of a provider.

    Attributes:
        worker_count: number of workers that claim trials of the provider.
        slots: most slots that this worker may hold, None for all. Shares are rounded up, so their sum may exceed the
            concurrency limit; the claims enforce the limit.
    """

    worker_count: int = 1
    slots: int | None = None


def measure_cpu_seconds() -> float:
    """Return the CPU time of this process in seconds, except for search texts, which can wait for idle time."""
    return time.process_time() - TEXT_CPU.seconds


class CpuWatch:
    """Watch on how much CPU time this process uses. A thread that waits for the interpreter's lock uses none.

    Args:
        cpu_clock: returns the CPU time used so far in seconds.
        clock: returns seconds.
    """

    def __init__(
        self, cpu_clock: Callable[[], float] = measure_cpu_seconds, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_clock, self._clock = cpu_clock, clock
        self._cpu_seconds, self._measured_at = cpu_clock(), clock()
        self._busy_intervals = 0

    def is_busy(self) -> bool:
        """Return whether the process used BUSY_CPU or more in each of the last BUSY_INTERVALS intervals.

        Each call ends an interval. The first interval begins when the watch is created.
        """
        cpu_seconds, now = self._cpu_clock(), self._clock()
        is_busy = cpu_seconds - self._cpu_seconds >= BUSY_CPU * (now - self._measured_at)
        self._cpu_seconds, self._measured_at = cpu_seconds, now
        self._busy_intervals = self._busy_intervals + 1 if is_busy else 0
        return self._busy_intervals >= BUSY_INTERVALS


class SlotSharing:
    """Job of a worker session that updates its share of the slots and, while it is busy, requests another worker."""

    def __init__(self, provider_id: int, database: DatabaseThread, slots: Slots) -> None:
        self._provider_id = provider_id
        self._worker_name = build_process_name("worker")
        self._database = database
        self._slots = slots
        self._can_claim = asyncio.Event()
        self._has_stopped = False

    def begin(self) -> None:
        """Let `run` begin. Call it once a claim has shown that the provider can be used."""
        self._can_claim.set()

    async def run(self) -> None:
        """Update the share and request workers, from `begin` until `stop`."""
        await self._can_claim.wait()
        cpu_watch, pause, ask_at, share = CpuWatch(), SHARE_SECONDS, 0.0, SlotShare()
        while not self._has_stopped:
            with suppress(*UNAVAILABLE_ERRORS):
                previous_count, share = share.worker_count, await self._database.run(self.update)
                self._slots.set_share(share.slots)
                if share.worker_count > previous_count:
                    pause = SHARE_SECONDS
            await asyncio.sleep(SHARE_SECONDS)
            if cpu_watch.is_busy() and not self._has_stopped and time.monotonic() >= ask_at:
                ask_at, pause = time.monotonic() + pause, min(2 * pause, MAX_ASK_PAUSE_SECONDS)
                with suppress(*UNAVAILABLE_ERRORS):
                    await self._database.run(request_another_worker, self._provider_id, share.worker_count)

    def stop(self) -> None:
        """End `run` when the session claims no more trials. Then call `give_up` in the database thread."""
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
    """Notify the workers if the provider has queued trials and not all live workers claim them.

    Args:
        provider_id: the provider of the trials.
        worker_count: number of workers that claim its trials.
    """
    if count_live_workers() > worker_count and has_queued_trials(provider_id):
        notify_workers([provider_id])
