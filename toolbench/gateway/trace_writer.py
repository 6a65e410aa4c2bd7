"""Writer that stores traces and costs in batches, so that no request waits for the database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.spending import Spending, add_spending
from toolbench.lab.serving.traces import write_traces
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, is_unavailable

logger = logging.getLogger(__name__)

MAX_WAITING = 2_000  # traces; further ones are dropped and counted, so that memory stays bounded
MAX_BATCH = 200
BATCH_SECONDS = 0.1
MAX_ATTEMPTS = 20  # to store a batch while the database is unavailable; two while the gateway stops
DROPS_PER_WARNING = 200  # traces; one log line for each would itself slow the gateway


class TraceWriter:
    """Queue of traces, sums of costs, and the task that stores both.

    Attributes:
        lost_count: number of traces that were not stored, because the queue was full or the database refused them.
    """

    def __init__(self, run_in_thread: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Create the queue. `run_in_thread` runs a function in the thread of the database."""
        self._run_in_thread = run_in_thread
        self._waiting: asyncio.Queue[GatewayTrace] = asyncio.Queue(MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._batch: list[GatewayTrace] = []
        self._is_stopping = False
        self._spending: dict[int, Spending] = {}
        self.lost_count = 0
        self._drop_count = 0

    def add_spending(self, provider_id: int, spending: Spending) -> None:
        """Add the cost of a request to the sums that are stored next."""
        if spending != Spending():
            self._spending[provider_id] = self._spending.get(provider_id, Spending()) + spending

    def put(self, trace: GatewayTrace) -> None:
        """Queue a trace; drop it if the queue is full."""
        try:
            self._waiting.put_nowait(trace)
        except asyncio.QueueFull:
            self.lost_count += 1
            self._drop_count += 1
            if self._drop_count % DROPS_PER_WARNING == 1:
                logger.warning("%s traces were dropped, because the queue was full", self._drop_count)

    def start(self) -> None:
        """Start the task in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the task and store the queued traces."""
        self._is_stopping = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._store_spending()
        while self._batch or not self._waiting.empty():
            await self._store()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            await self._store_spending()
            while self._batch or not self._waiting.empty():
                await self._store()

    async def _store(self) -> None:
        """Store the next batch; it is kept until then, also if the task is cancelled."""
        if not self._batch:
            self._batch = [self._waiting.get_nowait() for _ in range(min(MAX_BATCH, self._waiting.qsize()))]
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await self._run_in_thread(partial(write_traces, self._batch))
                break
            except Exception as error:  # a batch that fails must not end the task
                is_last = attempt == MAX_ATTEMPTS or (self._is_stopping and attempt > 1)
                if is_last or not is_unavailable(error):
                    self.lost_count += len(self._batch)
                    logger.exception("%s traces could not be stored", len(self._batch))
                    break
            await asyncio.sleep(DATABASE_RETRY_SECONDS)
        self._batch = []

    async def _store_spending(self) -> None:
        sums, self._spending = self._spending, {}
        if not sums:
            return
        try:
            await self._run_in_thread(lambda: add_spending(sums))
        except Exception:  # the sums are stored with the next ones
            logger.exception("Costs could not be stored; they are stored later")
            for provider_id, spending in sums.items():
                self.add_spending(provider_id, spending)
