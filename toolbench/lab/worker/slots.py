"""What a shift knows of its slots before the database does."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

MAX_UNSTORED_TRIALS = 500  # ended trials that free their slots before their end is stored; then storing sets the pace


@dataclass(frozen=True, slots=True)
class SlotHints:
    """For the database's count of slots: trials under the leases `finished` send nothing more; `reserved` slots are for
    trials that come back from a wait."""

    finished: tuple[UUID, ...] = ()
    reserved: int = 0


class Slots:
    """`freed` is set when another trial may be claimed."""

    def __init__(self) -> None:
        self.freed = asyncio.Event()
        self._finished: dict[UUID, None] = {}  # in their order
        self._reserved = 0

    def mark_finished(self, lease: UUID) -> None:
        """The trial under this lease has sent its last request."""
        self._finished[lease] = None
        self.freed.set()

    def mark_stored(self, lease: UUID) -> None:
        """The database knows of its end by itself."""
        known = lease in self._finished
        self._finished.pop(lease, None)
        if known and len(self._finished) >= MAX_UNSTORED_TRIALS:
            self.freed.set()

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Meanwhile a trial looks for a slot to go on; it comes before new ones."""
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def free(self) -> SlotHints:
        return SlotHints(tuple(islice(self._finished, MAX_UNSTORED_TRIALS)), self._reserved)
