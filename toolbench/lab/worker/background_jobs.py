"""Background jobs of a worker session; after an exception the job is started again."""

import asyncio
from collections.abc import Awaitable, Callable

MIN_PAUSE_SECONDS = 0.5  # between a failure and the next start; doubled with each failure
MAX_PAUSE_SECONDS = 5.0
RESET_SECONDS = 60.0  # without a failure, after which the pause is short again

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
