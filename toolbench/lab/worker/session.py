"""A shift: for a minute or two, one worker claims the queued trials of one provider and drives many at once."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from toolbench.lab.worker.background_jobs import Job, Pauses, keep_running
from toolbench.lab.worker.batch_writer import Writer
from toolbench.lab.worker.claims import ClaimedTrial, has_work, renew
from toolbench.lab.worker.database_thread import AWAY, DatabaseThread
from toolbench.lab.worker.fetching import Counter, Handed
from toolbench.lab.worker.heartbeat import beat
from toolbench.lab.worker.job_failures import count_failure
from toolbench.lab.worker.request_gate import Permits
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.storage import Returned
from toolbench.lab.worker.trial_job import Bench, Try
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.http.client import HttpClient

logger = logging.getLogger(__name__)

IDLE_SECONDS = 0.3  # between two looks at a queue that gives nothing
GATHER_SECONDS = 0.03  # from a slot that is free to the claim, for others to come free
LOOK_SECONDS = 0.8  # between two looks at the states of runs
LAG_SECONDS = 0.1
CLAIMING = "claiming trials"
TRIAL = "a trial"
ENDING = "ending a worker session"
STOP_SECONDS = 3.0  # for trials in flight when the worker is asked to stop


@dataclass(frozen=True, slots=True)
class Terms:
    """How a shift works.

    Attributes:
        seconds: how long it claims trials.
        check_runs: called every 0.8 s with the ids of the runs of its trials; returns those that are cancelled.
        sweep: called now and then and at the end, to repair what other workers lost.
        stopping: whether the worker is asked to stop.
        over: called when it claims no more, unless it could not claim for want of the provider's key.
    """

    seconds: float
    check_runs: Callable[[Collection[int]], Iterable[int]]
    sweep: Callable[[], object]
    stopping: Callable[[], bool] = lambda: False
    over: Callable[[], None] = lambda: None


def serve(provider_id: int, terms: Terms) -> int:
    """Works one shift; returns how many trials it ended. To be called in a thread without an event loop."""
    return asyncio.run(Shift(provider_id, terms).work())


@dataclass(slots=True)
class _Lag:
    """How late the event loop is, in milliseconds; the worst since it was last read."""

    worst: float = 0.0

    def take(self) -> float:
        worst, self.worst = self.worst, 0.0
        return worst


class Shift:
    """One event loop, one HTTP session, one database thread that stores and recomputes and one for short questions, so
    that no request waits behind a batch. `_held` are the trials whose lease is ours, by lease: from their claim until
    their end is stored. One whose lease was lost may be claimed again here while its first try still hangs."""

    def __init__(self, provider_id: int, terms: Terms) -> None:
        self._provider_id = provider_id
        self._terms = terms
        self._database = DatabaseThread()
        self._storing = DatabaseThread()
        self._counter = Counter(provider_id)
        self._writer = Writer(self._storing, self._settled)
        self._permits = Permits(self._database)
        self._slots = Slots()
        self._held: dict[UUID, Try] = {}
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._cancels: dict[int, CancellationToken] = {}
        self._lag = _Lag()
        self._ended = 0
        self._reached = True

    async def work(self) -> int:
        try:
            async with HttpClient() as door, self._background() as group:
                bench = Bench(self._provider_id, door, self._database, self._writer, self._permits, self._slots)
                await self._claim_until_over(bench, group)
                if self._reached:
                    await self._attempt(self._terms.over)
                await self._drain()
        finally:
            await self._storing.close()
            await self._database.close()
        return self._ended

    def jobs(self) -> Mapping[str, Job]:
        """What runs in the background of a session, by name. A job never returns; each is cancelled at the end."""
        return {
            "storing steps and outcomes": self._writer.run,
            "reserving requests": self._permits.run,
            "heartbeat": self._beat,
            "renewing leases": self._renew,
            "looking at runs": self._look,
            "sweeping": self._sweep,
            "measuring lag": self._measure_lag,
        }

    @asynccontextmanager
    async def _background(self) -> AsyncIterator[asyncio.TaskGroup]:
        async with asyncio.TaskGroup() as group:
            running = [keep_running(name, job, self._note) for name, job in self.jobs().items()]
            tasks = [group.create_task(job) for job in running]
            yield group
            for task in tasks:
                task.cancel()

    async def _note(self, job: str, error: Exception) -> None:
        try:
            await self._database.run(count_failure, job, error, self._provider_id)
        except AWAY:
            logger.error("The database is away; a failure is not counted: %s", job, exc_info=error)

    async def _attempt(self, verb: Callable[[], object]) -> None:
        """Run a verb that the end of a session can do without: the sweep makes it good."""
        try:
            with suppress(*AWAY):
                await self._database.run(verb)
        except Exception as error:
            await self._note(ENDING, error)

    async def _claim_until_over(self, bench: Bench, group: asyncio.TaskGroup) -> None:
        """Claim and start trials until the time is over, a stop is asked for or no work is left."""
        until, pauses, more = time.monotonic() + self._terms.seconds, Pauses(), True
        while more and time.monotonic() < until and not self._terms.stopping():
            try:
                more = await self._claim(bench, group)
            except Exception as error:
                await self._note(CLAIMING, error)
                await pauses.wait()

    async def _claim(self, bench: Bench, group: asyncio.TaskGroup) -> bool:
        """Claims once and starts what it got; waits when there was little. False when nothing is left to do."""
        self._slots.freed.clear()
        with suppress(*AWAY):
            handed = await self._database.run(self._counter.hand_out, self._slots.free())
            self._reached = handed is not None
            if handed is not None:
                for trial in handed.trials:
                    self._start(trial, handed, bench, group)
                if handed.more:
                    return True
            elif not self._held:
                return False
            if not self._held and not await self._database.run(has_work, self._provider_id):
                return False
        await self._wait()
        await asyncio.sleep(GATHER_SECONDS)
        return True

    def _start(self, trial: ClaimedTrial, handed: Handed, bench: Bench, group: asyncio.TaskGroup) -> None:
        cancelled = self._cancels.setdefault(trial.run_id, CancellationToken())
        held = self._held[trial.lease] = Try(trial, bench, cancelled)
        task = self._tasks[trial.lease] = group.create_task(self._try(held, handed))
        task.add_done_callback(lambda _: self._tasks.pop(trial.lease, None))

    async def _try(self, held: Try, handed: Handed) -> None:
        trial = held.trial
        try:
            ended = await held.run(handed.configs[trial.config_id], handed.reach)
        except asyncio.CancelledError:
            ended = False
        except Exception as error:
            held.fail(error)
            ended = True
            await self._note(TRIAL, error)
        if not ended:
            self._writer.put_back(Returned(trial.id, trial.lease, held.gate.ahead, held.lost_server))
        self._slots.end(trial.lease)

    def _settled(self, leases: Iterable[UUID], done: int) -> None:
        for lease in leases:
            self._held.pop(lease, None)
            self._slots.stored(lease)
        self._ended += done
        if not self._held:
            self._slots.freed.set()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._slots.freed.wait(), IDLE_SECONDS)

    async def _drain(self) -> None:
        """Waits for the trials in flight. Asked to stop, it queues them again after some seconds; a database that is
        away is waited for as long as the leases last."""
        patience = time.monotonic() + STOP_SECONDS
        while self._held:
            now = time.monotonic()
            if not self._terms.stopping():
                patience = now + STOP_SECONDS
            elif now > patience + settings.LEASE_SECONDS:
                logger.error("%s trials could not be stored before the worker stopped", len(self._held))
                return
            elif now > patience:
                for task in tuple(self._tasks.values()):
                    task.cancel()
            self._slots.freed.clear()
            await self._wait()
        await self._attempt(self._terms.sweep)

    async def _beat(self) -> None:
        while True:
            with suppress(*AWAY):
                await self._database.run(beat, "worker", loop_lag_ms=self._lag.take())
            await asyncio.sleep(settings.HEARTBEAT_SECONDS)

    async def _renew(self) -> None:
        """Keep the leases of the trials in flight; give up those that were lost."""
        while True:
            with suppress(*AWAY):
                held = [(held.trial.id, held.trial.lease) for held in self._held.values()]
                if held:
                    self._give_up({lease for _, lease in held} - await self._database.run(renew, held))
            await asyncio.sleep(settings.HEARTBEAT_SECONDS)

    def _give_up(self, lost: set[UUID]) -> None:
        """Somebody has these trials under another lease now, or they are over; nothing more is written of them."""
        for lease in lost & self._tasks.keys():
            self._tasks[lease].cancel()
            if held := self._held.pop(lease, None):
                logger.warning("Trial %s: its lease was lost, it is given up", held.trial.id)

    async def _look(self) -> None:
        """Every 0.8 s, pass on cancellations, finish runs and recompute cells."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(*AWAY):
                runs = {held.trial.run_id for held in self._held.values()}
                for run_id in await self._storing.run(self._terms.check_runs, runs):
                    self._cancels[run_id].set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(settings.SWEEP_SECONDS)
            with suppress(*AWAY):
                await self._storing.run(self._terms.sweep)

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_SECONDS
            await asyncio.sleep(LAG_SECONDS)
            lag = (loop.time() - due) * 1000
            self._lag.worst = max(self._lag.worst, lag)
            for held in self._held.values():
                held.worst_lag_ms = max(held.worst_lag_ms, lag)
