"""What a shift knows of its slots before the database does."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

MOST_UNSTORED = 500  # ended trials that free their slots before their end is stored; then storing sets the pace


@dataclass(frozen=True, slots=True)
class Free:
    """For the database's count of slots: trials under the leases `over` send nothing more; `kept` slots are for trials
    that come back from a wait."""

    over: tuple[UUID, ...] = ()
    kept: int = 0


class Slots:
    """`freed` is set when another trial may be claimed."""

    def __init__(self) -> None:
        self.freed = asyncio.Event()
        self._over: dict[UUID, None] = {}  # in their order
        self._returning = 0

    def end(self, lease: UUID) -> None:
        """The trial under this lease has sent its last request."""
        self._over[lease] = None
        self.freed.set()

    def stored(self, lease: UUID) -> None:
        """The database knows of its end by itself."""
        known = lease in self._over
        self._over.pop(lease, None)
        if known and len(self._over) >= MOST_UNSTORED:
            self.freed.set()

    @contextmanager
    def returning(self) -> Iterator[None]:
        """Meanwhile a trial looks for a slot to go on; it comes before new ones."""
        self._returning += 1
        try:
            yield
        finally:
            self._returning -= 1

    def free(self) -> Free:
        return Free(tuple(islice(self._over, MOST_UNSTORED)), self._returning)
