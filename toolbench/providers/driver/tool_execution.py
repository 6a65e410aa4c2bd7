"""Execution of the tool calls of one answer, in parallel where the policy and the tools allow it."""

import asyncio
import inspect
from collections.abc import Callable

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Execute, Outcome, PreparedCall
from toolbench.engine.types import JsonObject

CallTool = Callable[[str, JsonObject, str], object]  # (name, arguments, call id) -> value, or an awaitable of the value


async def run_calls(operation: Execute, call_tool: CallTool, now_ms: Callable[[], float]) -> tuple[Outcome, ...]:
    """Run the calls and return one outcome per call, in call order.

    A tool's failure is an outcome, not an exception. Calls share one event loop, so a call runs beside others only
    while it awaits.

    Args:
        operation: the calls to run.
        call_tool: runs one call; see `CallTool`.
        now_ms: returns the milliseconds since the trial's start.

    Raises:
        asyncio.CancelledError: this task was cancelled; the running calls are cancelled, too.
    """
    outcomes: list[Outcome] = []
    for group in group_calls(operation):
        if len(group) == 1:
            outcomes.append(await _run_call(group[0], call_tool, now_ms))
        else:
            outcomes += await asyncio.gather(*(_run_call(call, call_tool, now_ms) for call in group))
    return tuple(outcomes)


def group_calls(operation: Execute) -> list[list[PreparedCall]]:
    """Return the calls in order, in groups whose calls may run at the same time."""
    groups: list[list[PreparedCall]] = []
    is_last_group_closed = True
    for call in operation.calls:
        runs_alone = call.alone or not operation.is_parallel
        if runs_alone or is_last_group_closed:
            groups.append([])
        groups[-1].append(call)
        is_last_group_closed = runs_alone
    return groups


async def _run_call(call: PreparedCall, call_tool: CallTool, now_ms: Callable[[], float]) -> Outcome:
    """Run one call and return its outcome.

    The outcome's message is sent to the model. It gives the reason if the arguments are wrong or the call timed out.
    For any other failure it gives only the exception's type, because the exception's text may hold details of the host.
    Only an awaitable can time out.
    """
    started_ms = now_ms()
    timeout = asyncio.timeout(call.timeout_seconds)
    value: object = None
    code = message = ""
    try:
        value = call_tool(call.name, call.arguments, call.id)
        if inspect.isawaitable(value):
            async with timeout:
                value = await value
    except ToolArgumentError as error:
        code, message = "ARGUMENT_ERROR", str(error)
    except asyncio.CancelledError as error:
        if _is_task_cancelled():
            raise
        code, message = _describe_failure(error)
    except (Exception, SystemExit) as error:  # sys.exit in a tool ends only its call
        code, message = _describe_failure(error)
        if timeout.expired():
            code, message = "TOOL_TIMEOUT", f"The tool gave no result within {call.timeout_seconds:g} s."
    return Outcome(None if code else value, code, message, started_ms, now_ms() - started_ms)


def _describe_failure(error: BaseException) -> tuple[str, str]:
    return "INTERNAL_ERROR", f"The tool failed ({type(error).__name__})."


def _is_task_cancelled() -> bool:
    """Return whether this task is being cancelled; if not, a `CancelledError` comes from a task of the tool."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
