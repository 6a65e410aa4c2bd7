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
        self._timeouts: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Set the event and expire the registered timeouts."""
        super().set()
        for timeout in self._timeouts:
            _expire(timeout)

    @contextmanager
    def expire_on_cancel(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Register a timeout for the `with` block: it expires as soon as the event is set.

        Args:
            timeout: a timeout that has been entered.
        """
        self._timeouts.add(timeout)
        if self.is_set():
            _expire(timeout)
        try:
            yield
        finally:
            self._timeouts.discard(timeout)


def _expire(timeout: asyncio.Timeout) -> None:
    if not timeout.expired():
        timeout.reschedule(0)  # the loop's time 0 has passed, so the timeout expires at once
