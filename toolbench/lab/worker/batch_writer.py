"""Writer that collects steps, outcomes and requeued trials for 0.2 s and stores them in batches."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from uuid import UUID

from toolbench.lab.traces.step_facts import estimate_body_bytes
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.slots import TrialLease
from toolbench.lab.worker.storage import Batch, OutcomeWrite, RequeueWrite, StepWrite, write_batch

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.2  # time from the first write to its batch
MAX_BATCH_ROWS = 400  # most steps of one batch
# Limit for the bodies of all steps of a batch, and the same limit for the texts of all its outcomes: the time to send a
# statement grows faster than its size. A single larger step or outcome is sent nevertheless.
MAX_BATCH_BYTES = 16 * 1024 * 1024

SuccessorCallback = Callable[[Collection[UUID]], Sequence[TrialLease]]
StoredCallback = Callable[[Iterable[UUID], int], None]


@dataclass(frozen=True, slots=True)
class _QueuedOutcome:
    """An outcome and the number of steps that were ever queued before it."""

    steps_before: int
    outcome: OutcomeWrite


class BatchWriter:
    """Queue of writes that are kept in memory until the database has stored them.

    If the database server crashes, it may lose steps that it had acknowledged. They are stored again before their trial
    ends.

    Args:
        take_successors: called with the leases of the trials that a batch ends or requeues; returns the trials that
            take over their slots.
        on_stored: called after each batch with the leases that this worker no longer holds and the number of trials
            that ended.
    """

    def __init__(self, database: DatabaseThread, take_successors: SuccessorCallback, on_stored: StoredCallback) -> None:
        self._database = database
        self._take_successors = take_successors
        self._on_stored = on_stored
        self._steps: list[StepWrite] = []
        self._outcomes: list[_QueuedOutcome] = []
        self._requeues: list[RequeueWrite] = []
        self._queued_step_count = 0  # number of steps that were ever queued
        self._taken_step_count = 0  # how many of them batches have taken; the oldest are taken first
        self._has_writes = asyncio.Event()

    def put_step(self, step: StepWrite) -> None:
        """Queue a finished step."""
        self._steps.append(step)
        self._queued_step_count += 1
        self._has_writes.set()

    def put_outcome(self, outcome: OutcomeWrite) -> None:
        """Queue the outcome of a trial. Call it after the last step of the trial."""
        self._outcomes.append(_QueuedOutcome(self._queued_step_count, outcome))
        self._has_writes.set()

    def put_requeue(self, requeue: RequeueWrite) -> None:
        """Queue the requeueing of a trial. It is stored together with or after all steps that were queued before it."""
        self._requeues.append(requeue)
        self._has_writes.set()

    async def run(self) -> None:
        """Write batches until the task is cancelled.

        Raises:
            Exception: what writing raises, except for errors of an unavailable database. The batch is kept and written
                by the next call.
        """
        while True:
            await self._has_writes.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._has_writes.clear()
            await self._write_queued()

    async def _write_queued(self) -> None:
        """Write the queue in as many batches as it needs. Writes that are queued during the last one stay queued."""
        has_more = True
        while has_more:
            batch = self._take_batch()
            has_more = bool(self._steps or self._outcomes or self._requeues)
            leases = {item.lease for item in batch.releasing_writes}
            batch = replace(batch, successors=self._take_successors(leases))
            try:
                await self._write(batch)
            except Exception:
                self._restore_batch(batch)
                raise

    async def _write(self, batch: Batch) -> None:
        """Write a batch, and report it to `on_stored`. While the database is unavailable, try again and again."""
        while True:
            try:
                result = await self._database.run(write_batch, batch)
            except UNAVAILABLE_ERRORS as error:
                logger.warning("The database is unavailable; %s steps wait: %s", len(batch.steps), error)
                await asyncio.sleep(DATABASE_RETRY_SECONDS)
                continue
            self._rewrite_incomplete([item for item in batch.outcomes if item.trial_id in result.incomplete_ids])
            leases = [item.lease for item in batch.releasing_writes if item.trial_id not in result.incomplete_ids]
            self._on_stored(leases, len(result.ended_ids))
            return

    def _restore_batch(self, batch: Batch) -> None:
        """Put the batch back at the start of the queue."""
        self._outcomes[:0] = [_QueuedOutcome(self._taken_step_count, outcome) for outcome in batch.outcomes]
        self._steps[:0], self._requeues[:0] = batch.steps, batch.requeues
        self._taken_step_count -= len(batch.steps)
        self._has_writes.set()

    def _rewrite_incomplete(self, incomplete: Sequence[OutcomeWrite]) -> None:
        """Queue outcomes once more because the database has lost steps of their trials; queue all these steps first."""
        for outcome in incomplete:
            logger.warning("Trial %s: the database has lost some of its steps, all are written again", outcome.trial_id)
            for step in outcome.steps:
                self.put_step(step)
            self.put_outcome(outcome)

    def _take_batch(self) -> Batch:
        """Remove the oldest writes from the queue and return them as a batch.

        An outcome is included only if all steps that were queued before it are taken. Requeued trials are included only
        if neither a step nor an outcome remains queued.
        """
        count = _count_fitting(estimate_body_bytes(item.step) for item in self._steps[:MAX_BATCH_ROWS])
        steps, self._steps = self._steps[:count], self._steps[count:]
        self._taken_step_count += len(steps)
        ready = list(takewhile(lambda item: item.steps_before <= self._taken_step_count, self._outcomes))
        count = _count_fitting(_count_text_characters(item.outcome) for item in ready) if ready else 0
        outcomes, self._outcomes = [item.outcome for item in ready[:count]], self._outcomes[count:]
        if self._steps or self._outcomes:
            return Batch(steps, outcomes)
        requeues, self._requeues = self._requeues, []
        return Batch(steps, outcomes, requeues)


def _count_fitting(sizes: Iterable[int]) -> int:
    """Return how many of the first sizes add up to at most MAX_BATCH_BYTES; at least 1, even if there is no size."""
    return max(1, sum(total <= MAX_BATCH_BYTES for total in accumulate(sizes)))


def _count_text_characters(outcome: OutcomeWrite) -> int:
    """Return the number of characters of the outcome's texts, which is close to their size in bytes."""
    return sum(len(value) for value in outcome.columns.values() if isinstance(value, str))
