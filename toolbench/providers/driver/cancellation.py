"""Cancellation of running trials."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class CancellationToken(asyncio.Event):
    """Cancellation event shared by the trials of one run, bound to one event loop.

    Setting it expires the registered timeouts, so no task has to wait for the event.
    """

    def __init__(self) -> None:
        super().__init__()
        self._limits: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Set the event and expire the registered timeouts."""
        super().set()
        for limit in self._limits:
            _expire(limit)

    @contextmanager
    def expire_on_cancel(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Expire `limit` as soon as the event is set, within the `with` block.

        Args:
            limit: a timeout that has been entered.
        """
        self._limits.add(limit)
        if self.is_set():
            _expire(limit)
        try:
            yield
        finally:
            self._limits.discard(limit)


def _expire(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(0)
