"""Gate of a trial: each attempt of a request is counted against its run's limits before it is sent."""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from django.conf import settings

from toolbench.engine.events import StopReason
from toolbench.lab.worker.claims import ClaimedTrial, acquire_slot, release_slot
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.pacing.pacer import Pacer
from toolbench.lab.worker.pacing.send_schedule import PacedRequest, RequestResult
from toolbench.lab.worker.request_budget import Reservation, reserve
from toolbench.lab.worker.slots import Slots, TrialLease
from toolbench.lab.worker.trial_plan import ServerNotReadyError
from toolbench.providers.driver.drive import TrialStoppedError
from toolbench.providers.driver.step_records import ExchangeStep

logger = logging.getLogger(__name__)

SLOT_POLL_SECONDS = 0.2  # pause between two checks for a slot or a lease

_RequestFuture = asyncio.Future[StopReason | None]


class BudgetReserver:
    """Reserver of requests for all trials of a worker session.

    Requests that arrive while a reservation runs are counted together in the next one, with one update for each run.
    """

    def __init__(self, database: DatabaseThread) -> None:
        self._database = database
        self._futures_by_run: dict[int, list[_RequestFuture]] = defaultdict(list)
        self._has_requests = asyncio.Event()

    async def reserve(self, run_id: int) -> None:
        """Wait until one request of the run is reserved.

        Raises:
            TrialStoppedError: a limit of the run is reached, or the run was cancelled.
            Exception: the request could not be counted.
        """
        future: _RequestFuture = asyncio.get_running_loop().create_future()
        self._futures_by_run[run_id].append(future)
        self._has_requests.set()
        reason = await future
        if reason is not None:
            raise TrialStoppedError(reason)

    async def run(self) -> None:
        """Reserve requests until the task is cancelled.

        If the requests of a run cannot be counted, the waiting trials of that run get the exception.

        Raises:
            Exception: the first such exception, after all runs were handled.
        """
        while True:
            await self._has_requests.wait()
            self._has_requests.clear()
            futures_by_run, self._futures_by_run = self._futures_by_run, defaultdict(list)
            errors = [
                error for run_id, futures in futures_by_run.items() if (error := await self._resolve(run_id, futures))
            ]
            if errors:
                raise errors[0]

    async def _resolve(self, run_id: int, futures: list[_RequestFuture]) -> Exception | None:
        """Reserve one request for each future of a run and set its result.

        Returns:
            The exception that every future got instead, or None.
        """
        try:
            _grant_requests(futures, await self._reserve(run_id, len(futures)))
        except Exception as error:
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return error
        return None

    async def _reserve(self, run_id: int, requests: int) -> Reservation:
        while True:
            try:
                return await self._database.run(reserve, run_id, requests)
            except UNAVAILABLE_ERRORS as error:
                logger.warning("The database is unavailable, no request is sent until it is back: %s", error)
                await asyncio.sleep(DATABASE_RETRY_SECONDS)


def _grant_requests(futures: list[_RequestFuture], reservation: Reservation) -> None:
    """Grant the first `reservation.requests` futures and refuse the rest.

    A future that is done, because its trial no longer waits, is skipped; a request that was counted for it stays
    counted.
    """
    refusal = StopReason.CANCELLED if reservation.is_cancelled else StopReason.BUDGET
    for index, future in enumerate(futures):
        if not future.done():
            future.set_result(None if index < reservation.requests else refusal)


@dataclass(slots=True)
class RequestGate:
    """Gate that every request of one trial passes.

    Attributes:
        reserved_requests: number of requests that are counted and not sent yet.
        has_lost_server: returns whether the local server of the trial died; None to skip this check.
        paced_ms: milliseconds for which requests waited for the rate control of the provider.
        lease_confirmed_at: a monotonic time at which this worker held the lease.
    """

    trial: ClaimedTrial
    provider_id: int
    reserver: BudgetReserver
    database: DatabaseThread
    slots: Slots
    pacer: Pacer
    reserved_requests: int
    has_lost_server: Callable[[], Awaitable[bool]] | None = None
    paced_ms: float = 0.0
    lease_confirmed_at: float = field(default_factory=time.monotonic)
    _paced_request: PacedRequest | None = None

    async def reserve(self) -> None:
        """Wait until the next request is counted and may be sent.

        Raises:
            TrialStoppedError: a limit of the run is reached, or the run was cancelled.
            Exception: the request could not be counted.
        """
        if self.pacer.is_active:
            await self._start_request()
        if self.reserved_requests == 0:
            await self.reserver.reserve(self.trial.run_id)
            self.reserved_requests += 1
        await self._wait_for_lease()  # last, since the lease may end during the other waits
        self.reserved_requests -= 1

    async def _wait_for_lease(self) -> None:
        """Wait while the lease may have ended, since another worker may run the trial then.

        The job is cancelled when the database says that the lease was lost.
        """
        while time.monotonic() - self.lease_confirmed_at > settings.LEASE_SECONDS:
            await asyncio.sleep(SLOT_POLL_SECONDS)

    async def _start_request(self) -> None:
        started_at = time.monotonic()
        try:
            self._paced_request = await self.pacer.start_request()
        finally:
            self.paced_ms += (time.monotonic() - started_at) * 1000

    def finish_request(self, step: ExchangeStep, model: str) -> None:
        """Pass on to the pacer what an exchange says about the load of the provider."""
        if self._paced_request is not None:
            self._end_request(self.pacer.read_result(step, model))

    def close(self) -> None:
        """End a request that the pacer released but that was not sent. Call it at the end of the trial.

        `has_lost_server` is removed, since it refers to the trial's job and the job to this gate: this cycle would keep
        all bodies of the trial in memory until a garbage collection.
        """
        self.has_lost_server = None
        if self._paced_request is not None:
            self._end_request(None)

    def _end_request(self, result: RequestResult | None) -> None:
        if self._paced_request is not None:
            self.pacer.finish_request(self._paced_request, result)
            self._paced_request = None

    async def back_off(self, seconds: float) -> None:
        """Wait between two attempts without holding a slot, and acquire a slot again.

        Raises:
            ServerNotReadyError: the local server died.
        """
        if self.has_lost_server is not None and await self.has_lost_server():
            raise ServerNotReadyError("The local server has died.")
        retry_at = time.monotonic() + seconds
        # A slot that was handed over to this trial can be released only once the database counts this trial in it.
        while not self.slots.is_counted(self.trial.lease):
            await asyncio.sleep(SLOT_POLL_SECONDS)
        self.slots.leave(self.trial.lease)
        with contextlib.suppress(*UNAVAILABLE_ERRORS):  # without a database no other trial could claim the slot
            await self.database.run(release_slot, self.trial.id, self.trial.lease)
            self.slots.freed.set()
        await asyncio.sleep(retry_at - time.monotonic())
        with self.slots.reserve():
            while not await self._acquire_slot():
                await asyncio.sleep(SLOT_POLL_SECONDS)
        self.slots.hold(TrialLease(self.trial.id, self.trial.lease))

    async def _acquire_slot(self) -> bool:
        try:
            return await self.database.run(
                acquire_slot, self.provider_id, self.trial.id, lease=self.trial.lease, hints=self.slots.build_hints()
            )
        except UNAVAILABLE_ERRORS:
            return False
