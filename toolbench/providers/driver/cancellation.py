"""Telling running trials that they are over."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class CancellationToken(asyncio.Event):
    """Set by whoever wants the trials that share it to end now. It knows the limits of those that run, so that nobody
    has to wait on it for each. Belongs to one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._limits: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Lets the limits pass at once."""
        super().set()
        for limit in self._limits:
            _expire(limit)

    @contextmanager
    def expire_on_cancel(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Meanwhile the limit, which has been entered, passes when this is set."""
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
