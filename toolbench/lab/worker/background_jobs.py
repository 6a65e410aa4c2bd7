"""Background jobs beside trials and probes: an exception restarts the job, and ends nothing else."""

import asyncio
from collections.abc import Awaitable, Callable

FIRST_PAUSE = 0.5  # seconds between a failure and the next start; doubled with each failure in a row
LONGEST_PAUSE = 5.0

Job = Callable[[], Awaitable[None]]
Note = Callable[[str, Exception], Awaitable[None]]


class Pauses:
    """Growing pauses between the attempts of something that fails; short again after a minute without a failure."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE
        self._failed_at = 0.0

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._failed_at > 60:
            self._next = FIRST_PAUSE
        pause, self._next = self._next, min(2 * self._next, LONGEST_PAUSE)
        await asyncio.sleep(pause)
        self._failed_at = loop.time()


async def keep_running(name: str, job: Job, note: Note) -> None:
    """Run a job until it returns or is cancelled; start it again after each exception.

    Args:
        name: passed to `note` with the exception.
        job: starts the job; called once for each start.
        note: logs and counts a failure.
    """
    pauses = Pauses()
    while True:
        try:
            return await job()
        except Exception as error:
            await note(name, error)
            await pauses.wait()
