"""Restart of background jobs after exceptions, and pauses between recomputations of cells."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

MIN_PAUSE_SECONDS = 0.5  # first pause between a failure and the next start; the pause doubles with each failure
MAX_PAUSE_SECONDS = 5.0
RESET_SECONDS = 60.0  # time since the last pause after which the next one is MIN_PAUSE_SECONDS again
# Recomputing the stale cells reads all their trials, so its time grows with the size of a run. The pause after it is
# COUNT_FACTOR times as long, but at most MAX_COUNT_PAUSE_SECONDS.
COUNT_FACTOR = 40
MAX_COUNT_PAUSE_SECONDS = 30.0

JobFunction = Callable[[], Awaitable[None]]
FailureHandler = Callable[[str, Exception], Awaitable[None]]


class ExponentialBackoff:
    """Pauses between the attempts of a job that fails: each twice the one before, up to MAX_PAUSE_SECONDS.

    If the last pause ended more than RESET_SECONDS ago, the next one is MIN_PAUSE_SECONDS long again.
    """

    def __init__(self) -> None:
        self._pause_seconds = MIN_PAUSE_SECONDS
        self._pause_ended_at = 0.0

    async def wait(self) -> None:
        """Sleep for the next pause."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._pause_ended_at > RESET_SECONDS:
            self._pause_seconds = MIN_PAUSE_SECONDS
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, MAX_PAUSE_SECONDS)
        self._pause_ended_at = loop.time()


async def keep_running(name: str, job: JobFunction, on_failure: FailureHandler) -> None:
    """Run a job until it returns or is cancelled; start it again after each exception.

    Args:
        name: name of the job, passed to `on_failure`.
        job: called at each start.
        on_failure: called with the name and the exception before the pause.
    """
    backoff = ExponentialBackoff()
    while True:
        try:
            return await job()
        except Exception as error:
            await on_failure(name, error)
            await backoff.wait()


class CountPacing:
    """Pauses between the recomputations of stale cells by a worker session or by the scheduler.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the pause after the last recomputation is over; True before the first."""
        return self._clock() >= self._due_at

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure the time of the block, which recomputes cells, and begin the pause after it.

        An exception in the block begins no pause.
        """
        started_at = self._clock()
        yield
        now = self._clock()
        self._due_at = now + min(COUNT_FACTOR * (now - started_at), MAX_COUNT_PAUSE_SECONDS)
