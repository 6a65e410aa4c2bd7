"""Waiting for what another process or thread is about to do."""

import time
from collections.abc import Callable

MAX_WAIT_SECONDS = 180


def wait_until(is_so: Callable[[], bool], *, every: float = 0.05) -> None:
    """Return when `is_so` is true; fail after three minutes."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < until, "it never came about"
        time.sleep(every)
