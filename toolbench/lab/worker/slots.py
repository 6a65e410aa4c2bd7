"""Slots of a worker session: which trials may send requests, and which trials the database counts.

A trial that was claimed ahead waits for a slot. When a trial of the session finishes, its slot is handed over to the
first trial that waits, without the database. The database still counts the finished trial as the one in the slot. The
batch that stores its end makes the database count the trial that has the slot by then, in the same transaction. So the
database counts each slot once at any time.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

IDLE_SECONDS = 0.3  # longest wait for a freed slot; then the session claims again
SUPPLIED_SECONDS = 1.0  # the same while enough trials wait for a slot
MAX_UNSTORED_TRIALS = 500  # finished trials that are not stored; from this number on, no slot is handed over
# As many trials are claimed ahead as finish in this time. More are claimed once half of them have a slot.
AHEAD_SECONDS = 1.0
MAX_WAITING_TRIALS = 256
_MIN_RATE_SECONDS, _MAX_RATE_SECONDS = 0.5, 2.0  # shortest and longest time over which finished trials are counted


class TrialLease(NamedTuple):
    """A trial's id and the lease under which this worker holds it."""

    trial_id: int
    lease: UUID


@dataclass(frozen=True, slots=True)
class SlotHints:
    """Data of the session that a claim needs to count free slots and to claim trials ahead.

    Attributes:
        finished_leases: leases of trials that are stored as running in a slot that is free.
        unstored_leases: leases of all trials that have sent their last request and are stored as running.
        reserved_slots: number of slots that are kept for trials which return from back-off.
        ahead: number of trials to claim that have to wait for a slot, beside those for which a slot is free.
        share: most slots that the session may hold; None for all.
    """

    finished_leases: tuple[UUID, ...] = ()
    unstored_leases: tuple[UUID, ...] = ()
    reserved_slots: int = 0
    ahead: int = 0
    share: int | None = None


@dataclass(slots=True, eq=False)
class Slot:
    """A slot of this session.

    Attributes:
        counted: the trial that the database counts for it.
        holder: the trial that may send requests; None if the slot is free.
        successor: the trial that the database counts once the end of `counted` is stored; None if the slot ends then.
        confirmed_at: a monotonic time at which this worker held the lease of the previous holder; infinity if the
            holder is the first.
    """

    counted: TrialLease
    holder: TrialLease | None
    successor: TrialLease | None = None
    confirmed_at: float = math.inf


SlotFuture = asyncio.Future[Slot]


class Slots:
    """The slots of one session. The event `freed` is set when another trial may be claimed.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.freed = asyncio.Event()
        self._slots_by_counted: dict[UUID, Slot] = {}
        self._slots_by_holder: dict[UUID, Slot] = {}
        # Free slots by the lease that the database counts, in the order in which they became free.
        self._free: dict[UUID, Slot] = {}
        # Free slots that are not handed over any more: a claim may use them, since its hints name their leases, or they
        # end with the batch that is being stored.
        self._withheld: dict[UUID, Slot] = {}
        self._waiting: dict[TrialLease, SlotFuture] = {}  # in the order of their claims
        self._unstored: set[UUID] = set()  # leases of trials that finished
        self._finish_times: deque[float] = deque()
        self._reserved_slots = 0
        self._share: int | None = None

    def set_share(self, share: int | None) -> None:
        """Set how many slots the session may hold at most; None for all.

        Slots beyond the share are not taken away: they end with their trials.
        """
        self._share = share
        self._hand_over()

    def has_enough_waiting(self) -> bool:
        """Return whether no further trial has to be claimed ahead for now."""
        return len(self._waiting) > self._count_wanted() // 2

    async def wait_for_slot(self) -> None:
        """Wait until `freed` is set, for at most IDLE_SECONDS, or SUPPLIED_SECONDS while enough trials wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SUPPLIED_SECONDS if self.has_enough_waiting() else IDLE_SECONDS):
                await self.freed.wait()

    def end_claim(self) -> None:
        """Clear `freed`, which may have been set during a claim, if the claimed trials are enough for now.

        Call it when the trials that were claimed ahead wait for their slots.
        """
        if not self._free and self.has_enough_waiting():
            self.freed.clear()

    @property
    def _may_start_waiting(self) -> bool:
        """Whether a free slot may be given to a trial that was claimed ahead.

        It is False while a trial that returns from back-off needs a slot, and while the session holds its whole share.
        """
        return not self._reserved_slots and (self._share is None or len(self._slots_by_holder) < self._share)

    def hold(self, trial: TrialLease) -> None:
        """Note that the database counts this trial in a slot that the claim or `acquire_slot` gave to it."""
        self._slots_by_counted[trial.lease] = self._slots_by_holder[trial.lease] = Slot(trial, trial)

    async def wait(self, trial: TrialLease) -> Slot:
        """Wait until a trial that was claimed ahead gets a slot."""
        future: SlotFuture = asyncio.get_running_loop().create_future()
        self._waiting[trial] = future
        self._hand_over()
        try:
            return await future
        finally:
            self._waiting.pop(trial, None)

    def pop_waiting(self) -> tuple[TrialLease, SlotFuture] | None:
        """Remove and return the first trial that waits for a slot. Pass it to `grant` or `restore_waiting`.

        Returns:
            None if no trial waits, if the next free slot is reserved for a trial that returns from back-off, or if the
            session holds its share of the slots.
        """
        if not self._may_start_waiting:
            return None
        return next(((trial, self._waiting.pop(trial)) for trial in self._waiting), None)

    def grant(self, trial: TrialLease, future: SlotFuture) -> None:
        """Let a trial start, since the database counts it in a slot from now on; do nothing if it no longer waits."""
        if not future.done():
            self.hold(trial)
            future.set_result(self._slots_by_holder[trial.lease])

    def restore_waiting(self, trial: TrialLease, future: SlotFuture) -> None:
        """Let a trial wait again, ahead of the others."""
        if not future.done():
            self._waiting = {trial: future, **self._waiting}
            self._hand_over()

    def mark_finished(self, lease: UUID, confirmed_at: float = math.inf) -> None:
        """Note that the trial under this lease has sent its last request, and hand over its slot.

        Args:
            lease: the lease of the trial.
            confirmed_at: a monotonic time at which this worker held the lease.
        """
        self._unstored.add(lease)
        self._finish_times.append(self._clock())
        slot = self._slots_by_holder.pop(lease, None)
        if slot is not None:
            slot.holder, slot.confirmed_at = None, confirmed_at
            self._free[slot.counted.lease] = slot
            self._hand_over()
        if slot is None or slot.holder is None or not self.has_enough_waiting():
            self.freed.set()

    def _hand_over(self) -> None:
        """Let waiting trials start in free slots.

        No trial starts while too many finished trials are not stored.
        """
        while self._waiting and self._free and self._may_start_waiting and len(self._unstored) < MAX_UNSTORED_TRIALS:
            trial, future = next(iter(self._waiting.items()))
            del self._waiting[trial]
            if not future.done():
                slot = self._free.pop(next(iter(self._free)))
                slot.holder = trial
                self._slots_by_holder[trial.lease] = slot
                future.set_result(slot)

    def is_counted(self, lease: UUID) -> bool:
        """Return whether the database counts a trial itself in the slot that it holds; True also if it holds none."""
        slot = self._slots_by_holder.get(lease)
        return slot is None or slot.counted.lease == lease

    def leave(self, lease: UUID) -> None:
        """Note that a trial leaves its slot, since it backs off or its lease is lost. Call it only if `is_counted`.

        The slot ends: the database does not count it any more.
        """
        if self._slots_by_holder.pop(lease, None):
            self._slots_by_counted.pop(lease)

    def take_successors(self, leases: Collection[UUID]) -> list[TrialLease]:
        """Return the trials that the database has to count in place of those that a batch ends or requeues.

        From now on a free slot that the database counts for one of `leases` is not handed over: it ends with the batch.
        """
        successors = []
        for lease in leases:
            slot = self._slots_by_counted.get(lease)
            if slot is None:
                continue
            is_held = slot.holder is not None and slot.holder.lease not in leases
            slot.successor = slot.holder if is_held else None
            if slot.successor is not None:
                successors.append(slot.successor)
            elif self._free.pop(lease, None):
                self._withheld[lease] = slot
        return successors

    def mark_stored(self, lease: UUID) -> None:
        """Note that a trial is stored as ended or queued again, and that the database counts its successor.

        Set `freed` if free slots could not be reused because too many finished trials were not stored.
        """
        had_too_many = len(self._unstored) >= MAX_UNSTORED_TRIALS
        self._unstored.discard(lease)
        slot = self._slots_by_counted.pop(lease, None)
        if slot is not None:
            self._replace_counted(slot)
        if had_too_many:
            self._hand_over()
            self.freed.set()

    def _replace_counted(self, slot: Slot) -> None:
        """Note that the database counts the successor in the slot; without a successor, the slot ends."""
        dicts_with_slot = [slots for slots in (self._free, self._withheld) if slots.pop(slot.counted.lease, None)]
        successor, slot.successor = slot.successor, None
        if successor is not None:
            slot.counted = successor
            for slots in (self._slots_by_counted, *dicts_with_slot):
                slots[successor.lease] = slot
        elif slot.holder is not None:
            self._slots_by_holder.pop(slot.holder.lease, None)

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve a slot during the block for a trial that returns from back-off, ahead of new trials."""
        self._reserved_slots += 1
        try:
            yield
        finally:
            self._reserved_slots -= 1
            self._hand_over()

    def build_hints(self, *, claims_ahead: bool = False) -> SlotHints:
        """Return the hints for the next claim. Slots that are free now are not handed over from now on.

        Args:
            claims_ahead: whether to claim trials that have to wait for a slot.
        """
        while self._free and len(self._withheld) < MAX_UNSTORED_TRIALS:
            lease = next(iter(self._free))
            self._withheld[lease] = self._free.pop(lease)
        ahead = max(0, self._count_wanted() - len(self._waiting)) if claims_ahead else 0
        return SlotHints(tuple(self._withheld), tuple(self._unstored), self._reserved_slots, ahead, self._share)

    def _count_wanted(self) -> int:
        """Return how many trials should wait for a slot: as many as finish within AHEAD_SECONDS."""
        now = self._clock()
        while self._finish_times and self._finish_times[0] < now - _MAX_RATE_SECONDS:
            self._finish_times.popleft()
        if not self._finish_times:
            return 0
        seconds = max(_MIN_RATE_SECONDS, now - self._finish_times[0])
        return min(MAX_WAITING_TRIALS, int(len(self._finish_times) / seconds * AHEAD_SECONDS))
