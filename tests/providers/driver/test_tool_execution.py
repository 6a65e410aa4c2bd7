import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Execute, Outcome, PreparedCall
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.tool_execution import group_calls, run_calls


def now_ms() -> float:
    return time.perf_counter() * 1000


def execute_calls(execute: Execute, call_tool: Callable[[str, JsonObject, str], object]) -> tuple[Outcome, ...]:
    return asyncio.run(run_calls(execute, call_tool, now_ms))


def build_calls(*names: str, alone: str = "", timeout: float | None = None) -> tuple[PreparedCall, ...]:
    return tuple(PreparedCall(str(index), name, {}, name in alone, timeout) for index, name in enumerate(names))


class Meeting:
    """Tools that wait for each other: `together` returns once `expected` calls are inside."""

    def __init__(self, expected: int) -> None:
        self.inside = self.max_inside = 0
        self._expected = expected
        self._all = asyncio.Event()

    async def together(self, name: str, arguments: JsonObject, call_id: str) -> str:
        self.inside += 1
        self.max_inside = max(self.max_inside, self.inside)
        if self.inside == self._expected:
            self._all.set()
        await self._all.wait()
        return call_id

    async def briefly(self, name: str, arguments: JsonObject, call_id: str) -> str:
        self.inside += 1
        self.max_inside = max(self.max_inside, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        return call_id


def test_run_calls_in_parallel_returns_outcomes_in_call_order() -> None:
    meeting = Meeting(3)

    outcomes = execute_calls(Execute(0, build_calls("a", "b", "c"), is_parallel=True), meeting.together)

    assert [outcome.value for outcome in outcomes] == ["0", "1", "2"]
    assert meeting.max_inside == 3


def test_run_calls_without_parallel_runs_one_at_a_time() -> None:
    meeting = Meeting(0)

    execute_calls(Execute(0, build_calls("a", "b", "c"), is_parallel=False), meeting.briefly)

    assert meeting.max_inside == 1


def test_group_calls_separates_a_tool_that_runs_alone() -> None:
    execute = Execute(0, build_calls("a", "b", "x", "x", "c", "d", alone="x"), is_parallel=True)

    assert [[call.name for call in group] for group in group_calls(execute)] == [["a", "b"], ["x"], ["x"], ["c", "d"]]


def test_run_calls_each_call_has_the_timeout_of_its_tool() -> None:
    async def slow_or_not(name: str, arguments: JsonObject, call_id: str) -> str:
        if name == "slow":
            await asyncio.Event().wait()
        return name

    execute = Execute(0, (*build_calls("slow", timeout=0.01), *build_calls("fast")), is_parallel=True)
    slow, fast = execute_calls(execute, slow_or_not)

    assert (slow.error_code, slow.error_message) == ("TOOL_TIMEOUT", "The tool gave no result within 0.01 s.")
    assert (fast.error_code, fast.value) == ("", "fast")


class Refuses(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (ToolArgumentError("no such city"), "ARGUMENT_ERROR", "no such city"),
        (Refuses("a secret"), "INTERNAL_ERROR", "The tool failed (Refuses)."),
        (TimeoutError(), "INTERNAL_ERROR", "The tool failed (TimeoutError)."),
        (asyncio.CancelledError(), "INTERNAL_ERROR", "The tool failed (CancelledError)."),
        (SystemExit(3), "INTERNAL_ERROR", "The tool failed (SystemExit)."),
    ],
)
def test_run_calls_returns_a_failure_of_a_tool_as_outcome(raised: BaseException, code: str, message: str) -> None:
    async def awaited(name: str, arguments: JsonObject, call_id: str) -> None:
        raise raised

    def at_once(name: str, arguments: JsonObject, call_id: str) -> None:
        raise raised

    for tool in (awaited, at_once):
        failed, _ = execute_calls(Execute(0, build_calls("a", "b", timeout=60), is_parallel=True), tool)
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
