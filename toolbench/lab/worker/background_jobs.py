"""Background jobs of a worker session: an exception restarts the job and stops nothing else."""

import asyncio
from collections.abc import Awaitable, Callable

MIN_PAUSE_SECONDS = 0.5  # seconds between a failure and the next start; doubled with each failure in a row
MAX_PAUSE_SECONDS = 5.0

JobFunction = Callable[[], Awaitable[None]]
FailureHandler = Callable[[str, Exception], Awaitable[None]]


class ExponentialBackoff:
    """Growing pauses between the attempts of a job that fails; short again after a minute without a failure."""

    def __init__(self) -> None:
        self._next = MIN_PAUSE_SECONDS
        self._failed_at = 0.0

    async def wait(self) -> None:
        """Sleep for the next pause."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._failed_at > 60:
            self._next = MIN_PAUSE_SECONDS
        pause, self._next = self._next, min(2 * self._next, MAX_PAUSE_SECONDS)
        await asyncio.sleep(pause)
        self._failed_at = loop.time()


async def keep_running(name: str, job: JobFunction, on_failure: FailureHandler) -> None:
    """Run a job until it returns or is cancelled; start it again after each exception.

    Args:
        name: passed to `on_failure` with the exception.
        job: starts the job; called once for each start.
        on_failure: logs and counts a failure.
    """
    pauses = ExponentialBackoff()
    while True:
        try:
            return await job()
        except Exception as error:
            await on_failure(name, error)
            await pauses.wait()
