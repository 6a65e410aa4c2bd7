"""A trial's permission to send: counted against the run's caps before every attempt, and a slot kept or left while it
waits."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolbench.engine.events import StopReason
from toolbench.lab.worker.claims import ClaimedTrial, leave_slot, take_slot
from toolbench.lab.worker.database_thread import AWAY, DatabaseThread
from toolbench.lab.worker.request_budget import Granted, reserve
from toolbench.lab.worker.slots import Slots
from toolbench.lab.worker.trial_plan import NotReady
from toolbench.providers.driver.drive import TrialStoppedError

logger = logging.getLogger(__name__)

AWAY_SECONDS = 0.5
SLOT_SECONDS = 0.2  # between two looks for a free slot

_Waiting = asyncio.Future[StopReason | None]


class Permits:
    """Reserves for all trials of a shift: what is asked for while one reservation is under way goes into the next, as
    one update per run."""

    def __init__(self, database: DatabaseThread) -> None:
        self._database = database
        self._waiting: dict[int, list[_Waiting]] = defaultdict(list)
        self._asked = asyncio.Event()

    async def take(self, run_id: int) -> None:
        """Raises TrialStoppedError when the run's caps are reached or it was cancelled."""
        answer: _Waiting = asyncio.get_running_loop().create_future()
        self._waiting[run_id].append(answer)
        self._asked.set()
        reason = await answer
        if reason is not None:
            raise TrialStoppedError(reason)

    async def run(self) -> None:
        """Answers until it is cancelled. A run whose requests cannot be counted ends those trials that ask, by the
        exception, and no others. Raises the first such exception once every run was answered."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            waiting, self._waiting = self._waiting, defaultdict(list)
            failed = [error for run_id, answers in waiting.items() if (error := await self._answer(run_id, answers))]
            if failed:
                raise failed[0]

    async def _answer(self, run_id: int, answers: list[_Waiting]) -> Exception | None:
        try:
            _tell(answers, await self._reserve(run_id, len(answers)))
        except Exception as error:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
            return error
        return None

    async def _reserve(self, run_id: int, wanted: int) -> Granted:
        while True:
            try:
                return await self._database.run(reserve, run_id, wanted)
            except AWAY as error:
                logger.warning("The database is away, nothing is sent until it is back: %s", error)
                await asyncio.sleep(AWAY_SECONDS)


def _tell(answers: list[_Waiting], granted: Granted) -> None:
    """Those who gave up waiting get nothing; what was counted for them stays counted."""
    refusal = StopReason.CANCELLED if granted.cancelled else StopReason.BUDGET
    for place, answer in enumerate(answers):
        if not answer.done():
            answer.set_result(None if place < granted.requests else refusal)


@dataclass(slots=True)
class TrialGate:
    """The gate of one trial, with `ahead` requests that were counted when it was claimed. `lost` says whether its local
    server has died: then it is not waited for."""

    trial: ClaimedTrial
    provider_id: int
    permits: Permits
    database: DatabaseThread
    slots: Slots
    ahead: int
    lost: Callable[[], Awaitable[bool]] | None = None

    async def reserve(self) -> None:
        if self.ahead > 0:
            self.ahead -= 1
        else:
            await self.permits.take(self.trial.run_id)

    async def back_off(self, seconds: float) -> None:
        """Raises NotReady."""
        if self.lost is not None and await self.lost():
            raise NotReady("The local server has died.")
        with contextlib.suppress(*AWAY):  # then the slot is kept, and nothing else is claimed either
            await self.database.run(leave_slot, self.trial.id, self.trial.lease)
            self.slots.freed.set()
        await asyncio.sleep(seconds)
        with self.slots.returning():
            while not await self._take_slot():
                await asyncio.sleep(SLOT_SECONDS)

    async def _take_slot(self) -> bool:
        try:
            return await self.database.run(
                take_slot, self.provider_id, self.trial.id, lease=self.trial.lease, free=self.slots.free()
            )
        except AWAY:
            return False
