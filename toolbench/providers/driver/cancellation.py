"""Telling running trials that they are over."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Cancel(asyncio.Event):
    """Set by whoever wants the trials that share it to end now. It knows the limits of those that run, so that nobody
    has to wait on it for each. Belongs to one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._limits: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Lets the limits pass at once."""
        super().set()
        for limit in self._limits:
            _pass(limit)

    @contextmanager
    def ending(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Meanwhile the limit, which has been entered, passes when this is set."""
        self._limits.add(limit)
        if self.is_set():
            _pass(limit)
        try:
            yield
        finally:
            self._limits.discard(limit)


def _pass(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(0)
