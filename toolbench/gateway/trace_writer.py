"""Writer that stores traces and costs in batches, so that no request waits for the database."""

import asyncio
import logging
from contextlib import suppress

from toolbench.gateway.directory import Directory
from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.spending import Spending, add_spending
from toolbench.lab.serving.traces import write_traces

logger = logging.getLogger(__name__)

MAX_WAITING = 2_000  # traces; more are dropped and counted, so that memory stays bounded
MAX_BATCH = 200
BATCH_SECONDS = 0.1


class TraceWriter:
    """Queue of traces, sums of costs, and the task that stores both.

    Attributes:
        dropped: number of traces that were not stored.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._waiting: asyncio.Queue[GatewayTrace] = asyncio.Queue(MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._spending: dict[int, Spending] = {}
        self.dropped = 0

    def add_spending(self, provider_id: int, spending: Spending) -> None:
        """Add the cost of a request to the sums that are stored next."""
        if spending != Spending():
            self._spending[provider_id] = self._spending.get(provider_id, Spending()) + spending

    def put(self, trace: GatewayTrace) -> None:
        """Queue a trace; drop it if the queue is full."""
        try:
            self._waiting.put_nowait(trace)
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped % MAX_BATCH == 1:
                logger.warning("%s traces were dropped: storing is slower than the requests", self.dropped)

    def start(self) -> None:
        """Start the task in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the task and store the queued traces."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._store_spending()
        while not self._waiting.empty():
            await self._store()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            await self._store_spending()
            while not self._waiting.empty():
                await self._store()

    async def _store(self) -> None:
        batch = [self._waiting.get_nowait() for _ in range(min(MAX_BATCH, self._waiting.qsize()))]
        try:
            await self._directory.run(lambda: write_traces(batch))
        except Exception:  # a batch that fails must not end the task
            self.dropped += len(batch)
            logger.exception("%s traces could not be stored", len(batch))

    async def _store_spending(self) -> None:
        sums, self._spending = self._spending, {}
        if not sums:
            return
        try:
            await self._directory.run(lambda: add_spending(sums))
        except Exception:  # the sums are stored with the next ones
            logger.exception("Costs could not be stored; they are stored later")
            for provider_id, spending in sums.items():
                self.add_spending(provider_id, spending)
