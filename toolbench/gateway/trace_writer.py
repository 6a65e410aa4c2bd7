"""Writer that stores traces in batches, so that no request waits for the database."""

import asyncio
import logging
from contextlib import suppress

from toolbench.gateway.directory import Directory
from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.traces import write_traces

logger = logging.getLogger(__name__)

MAX_WAITING = 2_000  # traces; more are dropped and counted, so that memory stays bounded
MAX_BATCH = 200
BATCH_SECONDS = 0.1


class TraceWriter:
    """Queue of traces and the task that stores them.

    Attributes:
        dropped: number of traces that were not stored.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._waiting: asyncio.Queue[GatewayTrace] = asyncio.Queue(MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

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
        while not self._waiting.empty():
            await self._store()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            while not self._waiting.empty():
                await self._store()

    async def _store(self) -> None:
        batch = [self._waiting.get_nowait() for _ in range(min(MAX_BATCH, self._waiting.qsize()))]
        try:
            await self._directory.run(lambda: write_traces(batch))
        except Exception:  # a batch that fails must not end the task
            self.dropped += len(batch)
            logger.exception("%s traces could not be stored", len(batch))
