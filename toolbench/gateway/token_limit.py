"""Limit of requests with wrong tokens per client address, so that they cannot keep the database busy."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from toolbench.gateway.cached_read import MAX_WAIT_SECONDS, build_unavailable_error
from toolbench.gateway.request import GatewayError

WINDOW_SECONDS = 60
MAX_ADDRESSES = 10_000  # with a count; one more drops the least recently changed count


class WrongTokenLimit:
    """Counters of requests with wrong tokens in the current minute, by client address."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.time) -> None:
        """Create the limit.

        Args:
            per_minute: requests with a wrong token that one address may send in a minute.
            clock: returns seconds since the epoch.
        """
        self._per_minute = per_minute
        self._clock = clock
        # By address: a minute, counted from the epoch, and the number of requests with a wrong token in it.
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        # By address, while a look-up runs or waits.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def serialise_look_ups(self, address: str) -> AsyncIterator[None]:
        """Let one look-up of a token from this address run at a time, so that each sees the count of the one before.

        Raises:
            GatewayError: the address sent too many wrong tokens in this minute (429), or its earlier look-ups take
                longer than MAX_WAIT_SECONDS (503).
        """
        lock = self._locks.setdefault(address, asyncio.Lock())
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await lock.acquire()
        except TimeoutError:
            raise build_unavailable_error() from None
        try:
            self.check(address)
            yield
        finally:
            lock.release()

    def check(self, address: str) -> None:
        """Check that a token from this address may be looked up in the database.

        Raises:
            GatewayError: the address sent too many wrong tokens in this minute (429).
        """
        if self._get_count(address) >= self._per_minute:
            seconds = WINDOW_SECONDS - int(self._clock()) % WINDOW_SECONDS
            raise GatewayError(
                429,
                "too_many_wrong_tokens",
                f"Too many requests with a wrong token came from this address. Wait {seconds} seconds, "
                "and send a valid token.",
                retry_after=seconds,
            )

    def count(self, address: str) -> None:
        """Count a request whose token is wrong."""
        self._counts[address] = int(self._clock()) // WINDOW_SECONDS, self._get_count(address) + 1
        self._counts.move_to_end(address)
        if len(self._counts) > MAX_ADDRESSES:
            self._counts.popitem(last=False)

    def _get_count(self, address: str) -> int:
        """Return the number of requests with a wrong token from an address in the current minute."""
        minute, count = self._counts.get(address, (0, 0))
        return count if minute == int(self._clock()) // WINDOW_SECONDS else 0
