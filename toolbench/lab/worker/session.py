"""Worker session: one worker claims trials of one provider for SESSION_SECONDS and runs many at once."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import ParamSpec, Protocol
from uuid import UUID

from django.conf import settings

from toolbench.lab.worker.background_jobs import CountPacing, ExponentialBackoff, JobFunction, keep_running
from toolbench.lab.worker.batch_writer import BatchWriter
from toolbench.lab.worker.claims import ClaimedTrial, acquire_slot, has_queued_trials, renew_leases
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.fetching import ACCESS_CACHE_SECONDS, ClaimedBatch, TrialFetcher
from toolbench.lab.worker.health import record_heartbeat
from toolbench.lab.worker.job_failures import count_failure
from toolbench.lab.worker.pacing.pacer import Pacer
from toolbench.lab.worker.pacing.slot_shares import SlotSharing
from toolbench.lab.worker.request_gate import BudgetReserver
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.storage import RequeueWrite
from toolbench.lab.worker.trial_job import SessionContext, TrialJob
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.http.client import HttpClient

P = ParamSpec("P")
logger = logging.getLogger(__name__)

# Pause after a claim, in which its trials begin to wait for slots, and pause between a freed slot and the next claim,
# which can then use several slots.
GATHER_SECONDS = 0.03
SERVE_WAITING_SECONDS = 0.5  # pause between two attempts to acquire slots for trials that were claimed ahead
CHECK_RUNS_SECONDS = 0.8  # pause between two checks of the states of runs
LAG_INTERVAL_SECONDS = 0.1  # time between two measurements of the event-loop lag
CLAIMING_JOB = "claiming trials"
TRIAL_JOB = "a trial"
ENDING_JOB = "ending a worker session"
STOP_TIMEOUT_SECONDS = 3.0  # time for trials in flight to end when the worker is asked to stop


class CheckRuns(Protocol):
    """Function that checks the runs whose trials a session is running."""

    def __call__(self, run_ids: Collection[int], *, with_counts: bool) -> Iterable[int]:
        """Return the ids of the runs among `run_ids` that were cancelled or deleted.

        Args:
            run_ids: the runs whose trials the session is running.
            with_counts: whether to also recompute stale cells, continue sequential stopping and end finished runs.
        """
        ...


class Sweep(Protocol):
    """Function that repairs lost work."""

    def __call__(self, *, with_counts: bool) -> object:
        """Repair lost work; if `with_counts`, also recompute stale cells."""
        ...


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of a worker session.

    Attributes:
        seconds: how long to claim trials.
        check_runs: called every CHECK_RUNS_SECONDS with the ids of the runs whose trials the session is running.
        sweep: called every SWEEP_SECONDS without counts, since `check_runs` recomputes the cells. Called with counts at
            the end of the session, if the session could use the provider.
        is_stopping: returns whether the worker was asked to stop.
        on_claiming_ended: called when the session ends claiming, unless the provider could not be used at the last
            claim.
    """

    seconds: float
    check_runs: CheckRuns
    sweep: Sweep
    is_stopping: Callable[[], bool] = lambda: False
    on_claiming_ended: Callable[[], None] = lambda: None


def run_session(provider_id: int, options: SessionOptions) -> int:
    """Run one worker session and return how many trials it ended.

    Call it in a thread without an event loop.
    """
    return asyncio.run(WorkerSession(provider_id, options).run())


class WorkerSession:
    """Runner of claimed trials of one provider, with one event loop and one HTTP client.

    `_storage_thread` stores batches and recomputes cells; `_query_thread` runs short statements, so that no request
    waits for a batch. `_jobs` contains the job of each trial from the claim until the database has stored the outcome
    or queued the trial again, or until the lease is lost. Its keys are leases, since the session may lose the lease of
    a trial and claim the trial again while the job of the lost lease still runs.
    """

    def __init__(self, provider_id: int, options: SessionOptions) -> None:
        self._provider_id = provider_id
        self._options = options
        self._query_thread = DatabaseThread()
        self._storage_thread = DatabaseThread()
        self._fetcher = TrialFetcher(provider_id)
        self._slots = Slots()
        self._writer = BatchWriter(self._storage_thread, self._slots.take_successors, self._on_stored)
        self._reserver = BudgetReserver(self._query_thread)
        self._pacer = Pacer(provider_id, self._query_thread)
        self._sharing = SlotSharing(provider_id, self._query_thread, self._slots)
        self._jobs: dict[UUID, TrialJob] = {}
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._cancellation_tokens: dict[int, CancellationToken] = {}
        self._count_pacing = CountPacing()
        self._worst_lag_ms = 0.0  # since the last heartbeat
        self._ended_trials = 0
        self._has_access = True

    async def run(self) -> int:
        """Run the session and return how many trials it ended."""
        try:
            async with HttpClient() as client, self._run_background_jobs() as group:
                context = SessionContext(
                    self._provider_id,
                    client,
                    self._query_thread,
                    self._writer,
                    self._reserver,
                    self._slots,
                    self._pacer,
                )
                await self._claim_until_deadline(context, group)
                self._sharing.stop()
                await self._run_ignoring_errors(self._sharing.give_up)
                if self._has_access:
                    await self._run_ignoring_errors(self._options.on_claiming_ended)
                await self._drain()
        finally:
            await self._storage_thread.close()
            await self._query_thread.close()
        return self._ended_trials

    def list_background_jobs(self) -> Mapping[str, JobFunction]:
        """Return the background jobs by name. They run until they are cancelled at the end of the session."""
        return {
            "storing steps and outcomes": self._writer.run,
            "reserving requests": self._reserver.run,
            "pacing requests": self._pacer.run,
            "controlling the rate": self._pacer.report,
            "reading the settings of the rate": self._follow_settings,
            "giving slots to waiting trials": self._serve_waiting,
            "sharing slots": self._sharing.run,
            "heartbeat": self._record_heartbeats,
            "renewing leases": self._renew_leases,
            "checking runs": self._check_runs,
            "sweeping": self._sweep,
            "measuring lag": self._measure_lag,
        }

    @asynccontextmanager
    async def _run_background_jobs(self) -> AsyncIterator[asyncio.TaskGroup]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(keep_running(name, job, self._record_failure))
                for name, job in self.list_background_jobs().items()
            ]
            yield group
            for task in tasks:
                task.cancel()

    async def _record_failure(self, job: str, error: Exception) -> None:
        try:
            await self._query_thread.run(count_failure, job, error, self._provider_id)
        except UNAVAILABLE_ERRORS:
            logger.error("The database is unavailable; a failure is not counted: %s", job, exc_info=error)

    async def _run_ignoring_errors(self, function: Callable[P, object], *args: P.args, **named: P.kwargs) -> None:
        """Run a function and record its exception instead of raising it; ignore an unavailable database.

        Use it at the end of a session: a later sweep repeats the work.
        """
        try:
            with suppress(*UNAVAILABLE_ERRORS):
                await self._query_thread.run(function, *args, **named)
        except Exception as error:
            await self._record_failure(ENDING_JOB, error)

    async def _claim_until_deadline(self, context: SessionContext, group: asyncio.TaskGroup) -> None:
        """Claim and start trials until the time has passed, the worker is asked to stop, or no work is left."""
        deadline, backoff, has_work = time.monotonic() + self._options.seconds, ExponentialBackoff(), True
        while has_work and time.monotonic() < deadline and not self._options.is_stopping():
            try:
                has_work = await self._claim(context, group)
            except Exception as error:
                await self._record_failure(CLAIMING_JOB, error)
                await backoff.wait()

    async def _claim(self, context: SessionContext, group: asyncio.TaskGroup) -> bool:
        """Claim once and start the claimed trials; unless the batch was full, wait for a free slot.

        Returns:
            False if the session runs no trial, and no trial is queued or the provider cannot be used.
        """
        self._slots.freed.clear()
        with suppress(*UNAVAILABLE_ERRORS):
            claimed_at = time.monotonic()
            hints = self._slots.build_hints(claims_ahead=not self._pacer.is_active)
            batch = await self._query_thread.run(self._fetcher.fetch, hints)
            self._has_access = batch is not None
            if batch is not None:
                self._sharing.begin()
                self._pacer.set_settings(batch.access.pace)
                for trial in batch.trials:
                    self._start_job(trial, batch, context, group)
                    self._jobs[trial.lease].gate.lease_confirmed_at = claimed_at
                if batch.has_more:
                    return True
            elif not self._jobs:
                return False
            if not self._jobs and not await self._query_thread.run(has_queued_trials, self._provider_id):
                return False
        await asyncio.sleep(GATHER_SECONDS)
        self._slots.end_claim()
        await self._slots.wait_for_slot()
        await asyncio.sleep(GATHER_SECONDS)
        return True

    def _start_job(
        self, trial: ClaimedTrial, batch: ClaimedBatch, context: SessionContext, group: asyncio.TaskGroup
    ) -> None:
        token = self._cancellation_tokens.setdefault(trial.run_id, CancellationToken())
        job = self._jobs[trial.lease] = TrialJob(trial, context, token)
        if not trial.waits_for_slot:
            self._slots.hold(job.key)
        task = self._tasks[trial.lease] = group.create_task(self._run_job(job, batch))
        task.add_done_callback(lambda _: self._tasks.pop(trial.lease, None))

    async def _run_job(self, job: TrialJob, batch: ClaimedBatch) -> None:
        """Run a job; queue its trial again if it has not ended, and hand over its slot."""
        trial, failure = job.trial, None
        try:
            has_ended = await job.run(batch.configs[trial.config_id], batch.access)
        except asyncio.CancelledError:
            has_ended = False
        except Exception as error:
            job.end_with_internal_error(error)
            has_ended, failure = True, error
        if not has_ended:
            self._writer.put_requeue(
                RequeueWrite(trial.id, trial.lease, job.gate.reserved_requests, job.has_lost_server)
            )
        self._slots.mark_finished(trial.lease, job.gate.lease_confirmed_at)
        if failure is not None:
            await self._record_failure(TRIAL_JOB, failure)

    def _on_stored(self, leases: Iterable[UUID], ended_count: int) -> None:
        for lease in leases:
            self._jobs.pop(lease, None)
            self._slots.mark_stored(lease)
        self._ended_trials += ended_count
        if not self._jobs:
            self._slots.freed.set()

    async def _serve_waiting(self) -> None:
        """Let trials that were claimed ahead start in slots that other workers and probes have released."""
        while True:
            await asyncio.sleep(SERVE_WAITING_SECONDS)
            with suppress(*UNAVAILABLE_ERRORS):
                while await self._acquire_for_waiting():
                    pass

    async def _acquire_for_waiting(self) -> bool:
        """Try to acquire a slot in the database for the first trial that waits; return whether it got one."""
        waiting = self._slots.pop_waiting()
        if waiting is None:
            return False
        has_slot = False
        try:
            hints = self._slots.build_hints()
            trial_id, lease = waiting[0]
            has_slot = await self._query_thread.run(acquire_slot, self._provider_id, trial_id, lease=lease, hints=hints)
        finally:
            if has_slot:
                self._slots.grant(*waiting)
            else:
                self._slots.restore_waiting(*waiting)
        return has_slot

    async def _drain(self) -> None:
        """Wait for the trials in flight.

        If the worker is asked to stop, trials that have not ended after STOP_TIMEOUT_SECONDS are queued again. If the
        database is unavailable then, the session waits up to LEASE_SECONDS more and ends without the sweep.
        """
        stop_deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while self._jobs:
            now = time.monotonic()
            if not self._options.is_stopping():
                stop_deadline = now + STOP_TIMEOUT_SECONDS
            elif now > stop_deadline + settings.LEASE_SECONDS:
                logger.error("%s trials could not be stored before the worker stopped", len(self._jobs))
                return
            elif now > stop_deadline:
                for task in tuple(self._tasks.values()):
                    task.cancel()
            self._slots.freed.clear()
            await self._slots.wait_for_slot()
        if self._has_access or self._ended_trials:  # else the session could not use the provider
            await self._run_ignoring_errors(self._options.sweep, with_counts=True)

    async def _record_heartbeats(self) -> None:
        while True:
            with suppress(*UNAVAILABLE_ERRORS):
                lag_ms, self._worst_lag_ms = self._worst_lag_ms, 0.0
                await self._query_thread.run(record_heartbeat, "worker", loop_lag_ms=lag_ms)
            await asyncio.sleep(settings.HEARTBEAT_SECONDS)

    async def _renew_leases(self) -> None:
        """Renew the leases of the trials in flight; cancel jobs whose lease was lost."""
        while True:
            with suppress(*UNAVAILABLE_ERRORS):
                leases = [(job.trial.id, job.trial.lease) for job in self._jobs.values()]
                if leases:
                    renewed_at = time.monotonic()
                    renewed = await self._query_thread.run(renew_leases, leases)
                    self._confirm_leases(renewed, renewed_at)
                    self._cancel_lost_jobs({lease for _, lease in leases} - renewed)
            await asyncio.sleep(settings.HEARTBEAT_SECONDS)

    def _confirm_leases(self, leases: Iterable[UUID], confirmed_at: float) -> None:
        for lease in leases:
            if job := self._jobs.get(lease):
                job.gate.lease_confirmed_at = confirmed_at

    def _cancel_lost_jobs(self, lost_leases: set[UUID]) -> None:
        """Cancel the jobs whose lease was lost. Nothing more is stored for them."""
        for lease in lost_leases & self._tasks.keys():
            if self._slots.is_counted(lease):
                self._slots.leave(lease)  # the slot may be another worker's by now, so it is not handed over
            self._tasks[lease].cancel()
            if job := self._jobs.pop(lease, None):
                logger.warning("Trial %s: its lease was lost, the job is cancelled", job.trial.id)

    async def _check_runs(self) -> None:
        """Every CHECK_RUNS_SECONDS, pass on cancellations, recompute cells and finish runs.

        If recomputing takes long, it is done less often (`CountPacing`).
        """
        while True:
            await asyncio.sleep(CHECK_RUNS_SECONDS)
            with suppress(*UNAVAILABLE_ERRORS):
                tokens = {job.trial.run_id: job.cancellation_token for job in self._jobs.values()}
                for run_id in await self._storage_thread.run(self._check_runs_once, tokens.keys()):
                    tokens[run_id].set()
                    # Trials that are claimed after the run was resumed need a new token.
                    self._cancellation_tokens.pop(run_id, None)

    def _check_runs_once(self, run_ids: Collection[int]) -> Iterable[int]:
        if not self._count_pacing.is_due:
            return self._options.check_runs(run_ids, with_counts=False)
        with self._count_pacing.measure():
            return self._options.check_runs(run_ids, with_counts=True)

    async def _follow_settings(self) -> None:
        """Pass changed settings of the provider on to the pacer, also after the session has ended claiming."""
        while True:
            await asyncio.sleep(ACCESS_CACHE_SECONDS)
            with suppress(*UNAVAILABLE_ERRORS):
                pace = await self._query_thread.run(self._fetcher.get_pace)
                if pace is not None:
                    self._pacer.set_settings(pace)

    async def _sweep(self) -> None:
        """Every SWEEP_SECONDS, sweep in a new thread, since no batch should wait until search texts are written."""
        while True:
            await asyncio.sleep(settings.SWEEP_SECONDS)
            thread = DatabaseThread()
            try:
                with suppress(*UNAVAILABLE_ERRORS):
                    await thread.run(self._options.sweep, with_counts=False)
            finally:
                await thread.close()

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            expected_at = loop.time() + LAG_INTERVAL_SECONDS
            await asyncio.sleep(LAG_INTERVAL_SECONDS)
            lag_ms = (loop.time() - expected_at) * 1000
            self._worst_lag_ms = max(self._worst_lag_ms, lag_ms)
            for job in self._jobs.values():
                job.worst_lag_ms = max(job.worst_lag_ms, lag_ms)
