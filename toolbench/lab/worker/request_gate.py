"""A trial's permission to send: counted against the run's caps before every attempt, and a slot kept or left while it
waits."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolbench.engine.events import StopReason
from toolbench.lab.worker.claims import ClaimedTrial, acquire_slot, release_slot
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.request_budget import Reservation, reserve
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.trial_plan import ServerNotReadyError
from toolbench.providers.driver.drive import TrialStoppedError

logger = logging.getLogger(__name__)

DATABASE_RETRY_SECONDS = 0.5
SLOT_POLL_SECONDS = 0.2  # between two looks for a free slot

_RequestFuture = asyncio.Future[StopReason | None]


class BudgetReserver:
    """Reserves for all trials of a shift: what is asked for while one reservation is under way goes into the next, as
    one update per run."""

    def __init__(self, database: DatabaseThread) -> None:
        self._database = database
        self._waiting: dict[int, list[_RequestFuture]] = defaultdict(list)
        self._requested = asyncio.Event()

    async def reserve(self, run_id: int) -> None:
        """Raises TrialStoppedError when the run's caps are reached or it was cancelled."""
        answer: _RequestFuture = asyncio.get_running_loop().create_future()
        self._waiting[run_id].append(answer)
        self._requested.set()
        reason = await answer
        if reason is not None:
            raise TrialStoppedError(reason)

    async def run(self) -> None:
        """Answers until it is cancelled. A run whose requests cannot be counted ends those trials that ask, by the
        exception, and no others. Raises the first such exception once every run was answered."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            waiting, self._waiting = self._waiting, defaultdict(list)
            failed = [error for run_id, answers in waiting.items() if (error := await self._answer(run_id, answers))]
            if failed:
                raise failed[0]

    async def _answer(self, run_id: int, answers: list[_RequestFuture]) -> Exception | None:
        try:
            _grant_requests(answers, await self._reserve(run_id, len(answers)))
        except Exception as error:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
            return error
        return None

    async def _reserve(self, run_id: int, wanted: int) -> Reservation:
        while True:
            try:
                return await self._database.run(reserve, run_id, wanted)
            except UNAVAILABLE_ERRORS as error:
                logger.warning("The database is away, nothing is sent until it is back: %s", error)
                await asyncio.sleep(DATABASE_RETRY_SECONDS)


def _grant_requests(answers: list[_RequestFuture], granted: Reservation) -> None:
    """Those who gave up waiting get nothing; what was counted for them stays counted."""
    refusal = StopReason.CANCELLED if granted.cancelled else StopReason.BUDGET
    for place, answer in enumerate(answers):
        if not answer.done():
            answer.set_result(None if place < granted.requests else refusal)


@dataclass(slots=True)
class RequestGate:
    """The gate of one trial, with `reserved_requests` requests that were counted when it was claimed. `has_lost_server`
    says whether its local server has died: then it is not waited for."""

    trial: ClaimedTrial
    provider_id: int
    reserver: BudgetReserver
    database: DatabaseThread
    slots: Slots
    reserved_requests: int
    has_lost_server: Callable[[], Awaitable[bool]] | None = None

    async def reserve(self) -> None:
        if self.reserved_requests > 0:
            self.reserved_requests -= 1
        else:
            await self.reserver.reserve(self.trial.run_id)

    async def back_off(self, seconds: float) -> None:
        """Raises ServerNotReadyError."""
        if self.has_lost_server is not None and await self.has_lost_server():
            raise ServerNotReadyError("The local server has died.")
        with contextlib.suppress(*UNAVAILABLE_ERRORS):  # then the slot is kept, and nothing else is claimed either
            await self.database.run(release_slot, self.trial.id, self.trial.lease)
            self.slots.freed.set()
        await asyncio.sleep(seconds)
        with self.slots.reserve():
            while not await self._acquire_slot():
                await asyncio.sleep(SLOT_POLL_SECONDS)

    async def _acquire_slot(self) -> bool:
        try:
            return await self.database.run(
                acquire_slot, self.provider_id, self.trial.id, lease=self.trial.lease, free=self.slots.free()
            )
        except UNAVAILABLE_ERRORS:
            return False
