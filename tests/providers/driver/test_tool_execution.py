import asyncio
import time
from collections.abc import Awaitable, Callable, Collection

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Execute, Outcome, PreparedCall
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.tool_execution import group_calls, run_calls


def now_ms() -> float:
    return time.perf_counter() * 1000


def execute_calls(execute: Execute, call_tool: Callable[[str, JsonObject, str], object]) -> tuple[Outcome, ...]:
    return asyncio.run(run_calls(execute, call_tool, now_ms))


def build_calls(
    *names: str, alone_names: Collection[str] = (), timeout_seconds: float | None = None
) -> tuple[PreparedCall, ...]:
    return tuple(
        PreparedCall(str(index), name, {}, name in alone_names, timeout_seconds) for index, name in enumerate(names)
    )


class ConcurrencyCounter:
    """Tools that count the calls running at once.

    `wait_for_all` returns when `expected` calls are running; `yield_once` only yields to the loop.
    """

    def __init__(self, expected: int) -> None:
        self.running = self.max_running = 0
        self._expected = expected
        self._all = asyncio.Event()

    async def wait_for_all(self, name: str, arguments: JsonObject, call_id: str) -> str:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        if self.running == self._expected:
            self._all.set()
        await self._all.wait()
        return call_id

    async def yield_once(self, name: str, arguments: JsonObject, call_id: str) -> str:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return call_id


def test_run_calls_in_parallel_returns_outcomes_in_call_order() -> None:
    tools = ConcurrencyCounter(3)

    outcomes = execute_calls(Execute(0, build_calls("a", "b", "c"), is_parallel=True), tools.wait_for_all)

    assert [outcome.value for outcome in outcomes] == ["0", "1", "2"]
    assert tools.max_running == 3


def test_run_calls_without_parallel_runs_one_at_a_time() -> None:
    tools = ConcurrencyCounter(0)

    execute_calls(Execute(0, build_calls("a", "b", "c"), is_parallel=False), tools.yield_once)

    assert tools.max_running == 1


def test_group_calls_separates_a_tool_that_runs_alone() -> None:
    execute = Execute(0, build_calls("a", "b", "x", "x", "c", "d", alone_names=("x",)), is_parallel=True)

    assert [[call.name for call in group] for group in group_calls(execute)] == [["a", "b"], ["x"], ["x"], ["c", "d"]]


def test_run_calls_each_call_has_the_timeout_of_its_tool() -> None:
    async def slow_or_not(name: str, arguments: JsonObject, call_id: str) -> str:
        if name == "slow":
            await asyncio.Event().wait()
        return name

    execute = Execute(0, (*build_calls("slow", timeout_seconds=0.01), *build_calls("fast")), is_parallel=True)
    slow, fast = execute_calls(execute, slow_or_not)

    assert (slow.error_code, slow.error_message) == ("TOOL_TIMEOUT", "The tool gave no result within 0.01 s.")
    assert (fast.error_code, fast.value) == ("", "fast")


class UnexpectedToolError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (ToolArgumentError("no such city"), "ARGUMENT_ERROR", "no such city"),
        (UnexpectedToolError("a secret"), "INTERNAL_ERROR", "The tool failed (UnexpectedToolError)."),
        (TimeoutError(), "INTERNAL_ERROR", "The tool failed (TimeoutError)."),
        (asyncio.CancelledError(), "INTERNAL_ERROR", "The tool failed (CancelledError)."),
        (SystemExit(3), "INTERNAL_ERROR", "The tool failed (SystemExit)."),
    ],
)
def test_run_calls_returns_a_failure_of_a_tool_as_outcome(raised: BaseException, code: str, message: str) -> None:
    async def raise_async(name: str, arguments: JsonObject, call_id: str) -> None:
        raise raised

    def raise_sync(name: str, arguments: JsonObject, call_id: str) -> None:
        raise raised

    for tool in (raise_async, raise_sync):
        failed, _ = execute_calls(Execute(0, build_calls("a", "b", timeout_seconds=60), is_parallel=True), tool)
        assert (failed.error_code, failed.error_message, failed.value) == (code, message, None)


def test_run_calls_cancelled_task_ends_running_tools() -> None:
    stopped = []

    async def waiting(name: str, arguments: JsonObject, call_id: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(call_id)

    async def run_with_timeout() -> None:
        async with asyncio.timeout(0.01):
            await run_calls(Execute(0, build_calls("a", "b"), is_parallel=True), waiting, now_ms)

    with pytest.raises(TimeoutError):
        asyncio.run(run_with_timeout())
    assert stopped == ["0", "1"]


def test_run_calls_accepts_values_and_awaitables() -> None:
    def call_tool(name: str, arguments: JsonObject, call_id: str) -> Awaitable[str] | str:
        return asyncio.sleep(0, "later") if name == "later" else "now"

    outcomes = execute_calls(Execute(0, build_calls("later", "now"), is_parallel=True), call_tool)

    assert [outcome.value for outcome in outcomes] == ["later", "now"]
