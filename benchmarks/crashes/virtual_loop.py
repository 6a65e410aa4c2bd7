"""Event loop in virtual time.

Its clock stops during work in threads and during requests, and otherwise jumps to the next timer. So pauses of a worker
session take no real time, and their order does not depend on the speed of the machine.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, Unpack

_WAIT_SECONDS = 0.05  # between two checks whether the work has ended

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """Selector that waits only while work runs, and otherwise sets the clock forward."""

    def __init__(self, on_time: Callable[[float], object]) -> None:
        super().__init__()
        self._on_time = on_time
        self.now = 0.0
        self.work_under_way = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.work_under_way or timeout is None:
            return super().select(_WAIT_SECONDS if timeout is None else min(timeout, _WAIT_SECONDS))
        events = super().select(0)
        if not events and timeout > 0:
            self.now += timeout
            self._on_time(self.now)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop with a virtual clock.

    Args:
        wrap_call: wraps each function that runs in an executor.
        on_time: called with the virtual seconds after each jump.
    """

    def __init__(
        self, wrap_call: Callable[[Callable[[], Any]], Callable[[], Any]], on_time: Callable[[float], object]
    ) -> None:
        self._jumping = _JumpingSelector(on_time)
        self._wrap_call = wrap_call
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def begin_work(self) -> None:
        """Stop the clock until `end_work` is called as many times as this function."""
        self._jumping.work_under_way += 1

    def end_work(self) -> None:
        """Note the end of work that `begin_work` announced."""
        self._jumping.work_under_way -= 1

    def run_in_executor(self, executor: Any, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        self.begin_work()
        future: asyncio.Future[T] = super().run_in_executor(executor, self._wrap_call(lambda: function(*args)))
        future.add_done_callback(lambda _: self.end_work())
        return future


def run_in_virtual_time(loop: VirtualTimeLoop, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on this loop, and close the loop."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)
