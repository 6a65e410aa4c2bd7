"""An event loop whose clock stands still while work is under way and jumps to the next timer when none is.

Sleeps and polls of a worker session then take no time, and their order does not depend on the machine."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, Unpack

_WAIT_SECONDS = 0.05  # for work under way, before its end is looked for again

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """Selector that waits only for work under way, and otherwise moves the clock."""

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
    """Event loop with a clock of its own.

    Args:
        wrap_call: wraps each function that runs in an executor.
        on_time: called with the time of the clock after each jump.
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
        """Let the clock stand still until `end_work` is called as often."""
        self._jumping.work_under_way += 1

    def end_work(self) -> None:
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
