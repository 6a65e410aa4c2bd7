"""Value from the database, refreshed in the background and kept while the database does not answer."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from toolbench.gateway.request import GatewayError
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, is_unavailable

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 0.4  # an older value is read again in the background when it is used
MAX_AGE_SECONDS = 0.9  # a request waits for the refresh of an older value, so that changes count within a second
MAX_WAIT_SECONDS = 2.0  # if the refresh takes longer, a request uses the older value
MAX_OUTAGE_SECONDS = 300.0  # an older value is never used
RETRY_AFTER_SECONDS = 5  # header Retry-After of the error 503
_Value = TypeVar("_Value")


def build_unavailable_error() -> GatewayError:
    """Return the error for a request whose value cannot be read from the database now."""
    return GatewayError(
        503,
        "database_unavailable",
        "The gateway cannot read its database now. Send the request again later.",
        retry_after=RETRY_AFTER_SECONDS,
    )


class CachedRead(Generic[_Value]):
    """Value that requests share, bound to one event loop. At most one read of the value is under way.

    A value that is used often enough is refreshed before it is too old, so that no request waits for the database.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[_Value]],
        *,
        max_age_seconds: float = MAX_AGE_SECONDS,
        max_first_wait_seconds: float = MAX_WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty cache.

        Args:
            read: reads the value from the database.
            max_age_seconds: a request waits for the refresh of an older value.
            max_first_wait_seconds: time from the start of a read for which requests wait if there is no usable value.
            clock: returns seconds.
        """
        self._read = read
        self._max_age_seconds, self._max_first_wait_seconds = max_age_seconds, max_first_wait_seconds
        self._clock = clock
        self._values: tuple[_Value, ...] = ()  # () before the first read that succeeds, then (value,)
        self._read_at = -math.inf  # start of the last read that succeeded
        self._started_at = -math.inf  # start of the last read
        self._retry_at = -math.inf  # after a failed read: time before which no read starts
        self._task: asyncio.Task[None] | None = None

    async def get(self) -> _Value:
        """Return the value.

        Raises:
            GatewayError: the read failed or takes too long, and there is no value or it is older than
                MAX_OUTAGE_SECONDS.
        """
        now = self._clock()
        is_reading = self._task is not None and not self._task.done()
        if now - self._read_at > REFRESH_SECONDS and now >= self._retry_at and not is_reading:
            self._task, self._started_at = asyncio.create_task(self._refresh()), now
        if now - self._read_at > self._max_age_seconds and self._task is not None:
            wait_seconds = MAX_WAIT_SECONDS if self._has_usable_value() else self._max_first_wait_seconds
            await asyncio.wait({self._task}, timeout=max(0.0, self._started_at + wait_seconds - now))
        if not self._has_usable_value():
            raise build_unavailable_error()
        return self._values[0]

    def _has_usable_value(self) -> bool:
        return bool(self._values) and self._clock() - self._read_at <= MAX_OUTAGE_SECONDS

    async def _refresh(self) -> None:
        started_at = self._clock()
        try:
            value = await self._read_with_retry()
        except Exception as error:  # the last value is used meanwhile
            if self._retry_at <= self._read_at:  # the first failure since a read succeeded
                logger.warning("A read of the database failed; it is repeated until it succeeds: %s", error)
            self._retry_at = self._clock() + DATABASE_RETRY_SECONDS
        else:
            self._values, self._read_at = (value,), started_at

    async def _read_with_retry(self) -> _Value:
        """Read the value, a second time if the database was unavailable, for instance because it was restarted."""
        try:
            return await self._read()
        except Exception as error:
            if not is_unavailable(error):
                raise
        return await self._read()
