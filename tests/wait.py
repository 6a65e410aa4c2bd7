"""Waiting for what another process or thread is about to do."""

import time
from collections.abc import Callable

MAX_WAIT_SECONDS = 180


def wait_until(
    is_so: Callable[[], bool],
    *,
    every: float = 0.05,
    seconds: float = MAX_WAIT_SECONDS,
    describe: Callable[[], object] = lambda: "it never came about",
) -> None:
    """Return when `is_so` is true.

    Args:
        is_so: called at once, and then again after each pause.
        every: seconds of a pause.
        seconds: patience.
        describe: returns what is said on a failure; called only then.

    Raises:
        AssertionError: it is not so after `seconds`.
    """
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, describe()
        time.sleep(every)
