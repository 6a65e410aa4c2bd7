"""Slots that a worker session knows to be free before the database does."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

MAX_UNSTORED_TRIALS = 500  # ended trials that free their slots before their end is stored; then storing sets the pace


@dataclass(frozen=True, slots=True)
class SlotHints:
    """Hints for the database's count of slots.

    Attributes:
        finished: leases of trials that send nothing more.
        reserved: slots for trials that continue after a wait.
    """

    finished: tuple[UUID, ...] = ()
    reserved: int = 0


class Slots:
    """The slots of one session. The event `freed` is set when another trial may be claimed."""

    def __init__(self) -> None:
        self.freed = asyncio.Event()
        self._finished: dict[UUID, None] = {}  # in the order in which they finished
        self._reserved = 0

    def mark_finished(self, lease: UUID) -> None:
        """Note that the trial under this lease has sent its last request."""
        self._finished[lease] = None
        self.freed.set()

    def mark_stored(self, lease: UUID) -> None:
        """Note that the database has the outcome of the trial, so no hint is needed."""
        was_finished = lease in self._finished
        self._finished.pop(lease, None)
        if was_finished and len(self._finished) >= MAX_UNSTORED_TRIALS:
            self.freed.set()

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve a slot within the block for a trial that wants to continue; it precedes new trials."""
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def build_hints(self) -> SlotHints:
        """Return the hints for the next claim."""
        return SlotHints(tuple(islice(self._finished, MAX_UNSTORED_TRIALS)), self._reserved)
