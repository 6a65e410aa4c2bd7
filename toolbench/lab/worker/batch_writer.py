"""Gathers steps, outcomes and returned trials for some milliseconds and hands them to the database thread as one
batch."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from uuid import UUID

from toolbench.lab.traces.step_facts import body_bytes
from toolbench.lab.worker.database_thread import AWAY, DatabaseThread
from toolbench.lab.worker.storage import Batch, OutcomeWrite, Returned, StepWrite, write

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.1
AWAY_SECONDS = 0.5  # between two tries while the database is away
BATCH_ROWS = 400
BATCH_BYTES = 16 * 1024 * 1024  # of bodies, and of outcomes; sending a statement takes more than linear time

Settled = Callable[[Iterable[UUID], int], None]


class Writer:
    """What is put is kept in memory until it is stored. `settled` is told the leases that are no longer ours, and how
    many of their trials are done by our hand.

    A server that crashed may have forgotten steps that it had acknowledged: they are stored again before their trial
    ends."""

    def __init__(self, database: DatabaseThread, settled: Settled) -> None:
        self._database = database
        self._settled = settled
        self._steps: list[StepWrite] = []
        self._outcomes: list[OutcomeWrite] = []
        self._returned: list[Returned] = []
        self._something = asyncio.Event()

    def put_step(self, step: StepWrite) -> None:
        self._steps.append(step)
        self._something.set()

    def put_outcome(self, outcome: OutcomeWrite) -> None:
        """After the last step of its trial."""
        self._outcomes.append(outcome)
        self._something.set()

    def put_back(self, returned: Returned) -> None:
        """Queues the trial again, once the steps it has are stored."""
        self._returned.append(returned)
        self._something.set()

    async def run(self) -> None:
        """Writes until it is cancelled. Raises what the writing raises, but for AWAY; the batch is kept, and written
        by the next call."""
        while True:
            await self._something.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._something.clear()
            while self._steps or self._outcomes or self._returned:
                batch = self._take()
                try:
                    await self._write(batch)
                except Exception:
                    self._put_back(batch)
                    raise

    async def _write(self, batch: Batch) -> None:
        while True:
            try:
                written = await self._database.run(write, batch)
            except AWAY as error:
                logger.warning("The database is away; %s steps wait: %s", len(batch.steps), error)
                await asyncio.sleep(AWAY_SECONDS)
                continue
            self._write_again([item for item in batch.outcomes if item.trial_id in written.incomplete])
            settled = [item.lease for item in batch.let_go if item.trial_id not in written.incomplete]
            self._settled(settled, len(written.done))
            return

    def _put_back(self, batch: Batch) -> None:
        """Take the batch up again, before anything newer."""
        self._steps[:0], self._outcomes[:0], self._returned[:0] = batch.steps, batch.outcomes, batch.returned
        self._something.set()

    def _write_again(self, incomplete: Sequence[OutcomeWrite]) -> None:
        """Put back ends that were refused, and all steps of their trials before them."""
        for outcome in incomplete:
            logger.warning("Trial %s: the database has lost some of its steps, all are written again", outcome.trial_id)
            self._steps.extend(outcome.steps)
        self._outcomes.extend(incomplete)

    def _take(self) -> Batch:
        """Return the oldest steps, as many as make a batch; ends only once no step is left that came before them."""
        count = _fitting(body_bytes(item.step) for item in self._steps[:BATCH_ROWS])
        steps, self._steps = self._steps[:count], self._steps[count:]
        if self._steps:
            return Batch(steps)
        count = _fitting(map(_text_bytes, self._outcomes))
        outcomes, self._outcomes = self._outcomes[:count], self._outcomes[count:]
        if self._outcomes:
            return Batch(steps, outcomes)
        returned, self._returned = self._returned, []
        return Batch(steps, outcomes, returned)


def _fitting(sizes: Iterable[int]) -> int:
    """Return how many of the first items fit into a batch; at least one."""
    return max(1, sum(total <= BATCH_BYTES for total in accumulate(sizes)))


def _text_bytes(outcome: OutcomeWrite) -> int:
    return sum(len(value) for value in outcome.columns.values() if isinstance(value, str))
