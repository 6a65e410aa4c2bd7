"""Waiting for a condition that another process or thread fulfils."""

import time
from collections.abc import Callable

MAX_WAIT_SECONDS = 180


def wait_until(
    is_true: Callable[[], bool],
    *,
    every: float = 0.05,
    seconds: float = MAX_WAIT_SECONDS,
    describe: Callable[[], object] = lambda: "it never came about",
) -> None:
    """Return as soon as `is_true` returns True.

    Args:
        is_true: the condition; called immediately, and again after each pause.
        every: the pause in seconds.
        seconds: the longest wait.
        describe: returns the message of a failure; called only then.

    Raises:
        AssertionError: the condition is still False after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, describe()
        time.sleep(every)
