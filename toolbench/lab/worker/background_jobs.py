"""Background jobs of a worker session, which start again after an exception, and the pauses between counts of cells."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

MIN_PAUSE_SECONDS = 0.5  # between a failure and the next start; doubled with each failure
MAX_PAUSE_SECONDS = 5.0
RESET_SECONDS = 60.0  # without a failure, after which the pause is short again
# A count of cells reads all trials of the stale cells, so its time grows with a run.
COUNT_FACTOR = 20  # the pause after a count is this many times as long as the count
MAX_COUNT_PAUSE_SECONDS = 30.0

JobFunction = Callable[[], Awaitable[None]]
FailureHandler = Callable[[str, Exception], Awaitable[None]]


class ExponentialBackoff:
    """Pauses between the attempts of a job that fails: each is twice as long, up to MAX_PAUSE_SECONDS."""

    def __init__(self) -> None:
        self._pause_seconds = MIN_PAUSE_SECONDS
        self._waited_at = 0.0

    async def wait(self) -> None:
        """Sleep for the next pause."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._waited_at > RESET_SECONDS:
            self._pause_seconds = MIN_PAUSE_SECONDS
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, MAX_PAUSE_SECONDS)
        self._waited_at = loop.time()


async def keep_running(name: str, job: JobFunction, on_failure: FailureHandler) -> None:
    """Run a job until it returns or is cancelled; start it again after each exception.

    Args:
        name: name of the job, passed to `on_failure`.
        job: called for each start.
        on_failure: called with the name and the exception; logs and counts the failure.
    """
    backoff = ExponentialBackoff()
    while True:
        try:
            return await job()
        except Exception as error:
            await on_failure(name, error)
            await backoff.wait()


class CountPacing:
    """Times at which a worker session or the scheduler counts cells.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the pause since the last count has passed."""
        return self._clock() >= self._due_at

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure the time of the block, in which cells are counted; the pause after it depends on that time."""
        started_at = self._clock()
        yield
        now = self._clock()
        self._due_at = now + min(COUNT_FACTOR * (now - started_at), MAX_COUNT_PAUSE_SECONDS)
