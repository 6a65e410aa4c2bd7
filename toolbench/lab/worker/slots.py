"""Slots of a worker session that are free or reserved although the database does not show it yet."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

MAX_UNSTORED_TRIALS = 500  # slots that are reused before the outcomes of their trials are stored


@dataclass(frozen=True, slots=True)
class SlotHints:
    """Corrections to the database's count of slots.

    Attributes:
        finished_leases: leases of trials that have sent their last request and are still stored as running.
        reserved_slots: number of slots that are kept for trials which return from back-off.
    """

    finished_leases: tuple[UUID, ...] = ()
    reserved_slots: int = 0


class Slots:
    """The slots of one session. The event `freed` is set when another trial may be claimed."""

    def __init__(self) -> None:
        self.freed = asyncio.Event()
        self._finished_leases: dict[UUID, None] = {}  # in the order in which the trials finished
        self._reserved_slots = 0

    def mark_finished(self, lease: UUID) -> None:
        """Note that the trial under this lease has sent its last request."""
        self._finished_leases[lease] = None
        self.freed.set()

    def mark_stored(self, lease: UUID) -> None:
        """Remove the lease from the hints, since the outcome of its trial is stored.

        Set `freed` if the hints now contain a lease that exceeded MAX_UNSTORED_TRIALS before.
        """
        was_finished = lease in self._finished_leases
        self._finished_leases.pop(lease, None)
        if was_finished and len(self._finished_leases) >= MAX_UNSTORED_TRIALS:
            self.freed.set()

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve a slot during the block for a trial that returns from back-off, ahead of new trials."""
        self._reserved_slots += 1
        try:
            yield
        finally:
            self._reserved_slots -= 1

    def build_hints(self) -> SlotHints:
        """Return the hints for the next claim."""
        return SlotHints(tuple(islice(self._finished_leases, MAX_UNSTORED_TRIALS)), self._reserved_slots)
