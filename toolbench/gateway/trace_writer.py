"""Writer that stores traces and costs in batches, so that no request waits for the database."""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.spending import Spending, SpendingBatch, add_spending
from toolbench.lab.serving.traces import BODY_COLUMNS, TracesRefusedError, write_traces
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, is_unavailable

logger = logging.getLogger(__name__)

MAX_WAITING_TRACES = 2_000  # in the queue; further ones are dropped and counted, so that memory stays bounded
MAX_WAITING_BYTES = 64_000_000  # of bodies in the queue; further traces are stored without their bodies
MAX_BATCH_TRACES = 200
MAX_BATCH_BYTES = 16_000_000
BATCH_SECONDS = 0.1  # pause between two batches, unless a full one waits
MAX_ATTEMPTS = 1_200  # to store a batch while the database is unavailable; they take ten minutes
MAX_LAST_ATTEMPTS = 3  # while the gateway stops
DROPS_PER_WARNING = 200  # dropped traces or bodies; a log line for each of them would slow the gateway


class TraceWriter:
    """Queue of traces, sums of costs, and the task that stores both.

    Attributes:
        lost_count: number of traces that were not stored, because the queue was full, or the database refused them or
            was unavailable for too long.
    """

    def __init__(self, run_in_thread: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Create the queue.

        Args:
            run_in_thread: runs a function in the thread of the database.
        """
        self._run_in_thread = run_in_thread
        self._waiting: deque[tuple[GatewayTrace, int]] = deque()  # each with the bytes of its bodies
        self._waiting_bytes = 0
        self._body_tasks: set[asyncio.Task[None]] = set()  # each adds the bodies of a trace in a thread
        self._body_task_bytes = 0  # of the bodies that these tasks add
        self._task: asyncio.Task[None] | None = None
        self._batch: list[GatewayTrace] = []
        self._attempts = 0  # to store the batch
        self._stopping = asyncio.Event()
        self._spending: dict[int, Spending] = {}  # by provider id, not in a batch yet
        self._writer_id = uuid.uuid4()  # SpendingBatch.writer
        self._spending_batch = SpendingBatch(self._writer_id, 0, {})  # the last batch; it has no sums once it is stored
        self.lost_count = 0
        self._drop_count = 0  # traces that were dropped or lost their bodies, because the queue was full

    def add_spending(self, provider_id: int, spending: Spending) -> None:
        """Add the cost of a request to the sums that are stored next."""
        if spending != Spending():
            self._spending[provider_id] = self._spending.get(provider_id, Spending()) + spending

    def put(self, trace: GatewayTrace) -> None:
        """Queue a trace; drop its bodies if too many bytes wait, and the trace if too many traces wait."""
        if len(self._waiting) >= MAX_WAITING_TRACES:
            self.lost_count += 1
            self._count_drop()
            return
        trace_bytes = sum(len(getattr(trace, column) or b"") for column in BODY_COLUMNS)
        if self._waiting_bytes + trace_bytes > MAX_WAITING_BYTES:
            for column in BODY_COLUMNS:
                setattr(trace, column, None)
            trace_bytes = 0
            self._count_drop()
        self._waiting.append((trace, trace_bytes))
        self._waiting_bytes += trace_bytes

    def put_large(self, trace: GatewayTrace, body_bytes: int, add_bodies: Callable[[], None]) -> None:
        """Queue a trace after a thread has added its bodies; queue it without bodies if too many bytes wait.

        Args:
            trace: the trace without bodies.
            body_bytes: number of bytes of the bodies.
            add_bodies: adds the bodies to the trace, masked.
        """
        if self._waiting_bytes + self._body_task_bytes + body_bytes > MAX_WAITING_BYTES:
            self._count_drop()
            self.put(trace)
            return
        self._body_task_bytes += body_bytes
        task = asyncio.create_task(self._add_bodies(trace, body_bytes, add_bodies))
        self._body_tasks.add(task)
        task.add_done_callback(self._body_tasks.discard)

    async def _add_bodies(self, trace: GatewayTrace, body_bytes: int, add_bodies: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(add_bodies)
        except Exception:  # the trace is stored with the bodies that were added before the error
            logger.exception("The bodies of a trace could not be added")
        self._body_task_bytes -= body_bytes
        self.put(trace)

    def _count_drop(self) -> None:
        self._drop_count += 1
        if self._drop_count % DROPS_PER_WARNING == 1:
            logger.warning("%s traces or their bodies were dropped, because the queue was full", self._drop_count)

    def start(self) -> None:
        """Start the task in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the task, and store the costs and the queued traces; log what could not be stored.

        The task is not cancelled: a call in the thread would go on, and its result would be unknown.
        """
        self._stopping.set()
        if self._task is not None:
            await self._task
        await asyncio.gather(*self._body_tasks)
        self._attempts = 0
        failures = 0
        while failures < MAX_LAST_ATTEMPTS and self._list_unstored_providers():
            if not await self._store_spending():
                failures += 1
                await asyncio.sleep(DATABASE_RETRY_SECONDS)
        while self._batch or self._waiting:
            if not await self._store_batch():
                await asyncio.sleep(DATABASE_RETRY_SECONDS)
        if lost := self._list_unstored_providers():
            logger.error("Costs of the providers %s were lost", lost)

    async def _run(self) -> None:
        """Store the costs, then one batch of traces, and so on until the writer stops.

        Costs are stored between two batches, so that they do not wait until a long queue of traces is stored.
        """
        pause = BATCH_SECONDS
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            has_stored_spending = await self._store_spending()
            has_stored_batch = await self._store_batch()
            if not (has_stored_spending and has_stored_batch):
                pause = DATABASE_RETRY_SECONDS
            else:
                pause = 0 if self._is_batch_waiting() else BATCH_SECONDS

    def _list_unstored_providers(self) -> list[int]:
        """Return the ids of the providers whose sums are not stored yet."""
        return sorted({*self._spending, *self._spending_batch.by_provider})

    def _is_batch_waiting(self) -> bool:
        """Return whether the queue has a full batch."""
        return len(self._waiting) >= MAX_BATCH_TRACES or self._waiting_bytes >= MAX_BATCH_BYTES

    def _take_batch(self) -> None:
        batch_bytes = 0
        while self._waiting and len(self._batch) < MAX_BATCH_TRACES:
            trace, trace_bytes = self._waiting[0]
            batch_bytes += trace_bytes
            if self._batch and batch_bytes > MAX_BATCH_BYTES:
                return
            self._waiting.popleft()
            self._batch.append(trace)
            self._waiting_bytes -= trace_bytes

    async def _store_batch(self) -> bool:
        """Try once to store the next batch.

        Returns:
            False if the batch is kept for a further attempt, else True.
        """
        if not self._batch:
            self._take_batch()
            self._attempts = 0
        if self._batch:
            self._attempts += 1
            try:
                await self._run_in_thread(partial(write_traces, self._batch))
            except TracesRefusedError as error:
                self.lost_count += error.count
                logger.exception("%s of %s traces could not be stored", error.count, len(self._batch))
            except Exception as error:  # a batch that fails must not end the task
                max_attempts = MAX_LAST_ATTEMPTS if self._stopping.is_set() else MAX_ATTEMPTS
                if self._attempts < max_attempts and is_unavailable(error):
                    return False
                self.lost_count += len(self._batch)
                logger.exception("%s traces could not be stored", len(self._batch))
        self._batch = []
        return True

    async def _store_spending(self) -> bool:
        """Try once to store the next batch of sums; return False if it is kept for a further attempt.

        A batch that failed is sent again unchanged, since it may be stored although the answer was lost.
        """
        if not self._spending_batch.by_provider:
            if not self._spending:
                return True
            self._spending_batch = SpendingBatch(self._writer_id, self._spending_batch.number + 1, self._spending)
            self._spending = {}
        try:
            await self._run_in_thread(partial(add_spending, self._spending_batch))
        except Exception as error:  # the batch is sent again
            logger.warning("Costs could not be stored; they are stored later: %s", error)
            return False
        self._spending_batch = SpendingBatch(self._writer_id, self._spending_batch.number, {})
        return True
