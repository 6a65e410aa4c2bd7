"""Execution of the calls of one answer: in parallel where allowed, with results in call order."""

import asyncio
import inspect
from collections.abc import Callable

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Execute, Outcome, PreparedCall
from toolbench.engine.types import JsonObject

CallTool = Callable[[str, JsonObject, str], object]


async def run_calls(operation: Execute, call_tool: CallTool, now_ms: Callable[[], float]) -> tuple[Outcome, ...]:
    """Run the calls and return one outcome per call, in call order.

    A tool's failure is a value. Only the cancellation of this task is raised, and it stops the running calls. A call
    runs in parallel to others only while it awaits.
    """
    outcomes: list[Outcome] = []
    for group in group_calls(operation):
        if len(group) == 1:
            outcomes.append(await _run_call(group[0], call_tool, now_ms))
        else:
            outcomes += await asyncio.gather(*(_run_call(call, call_tool, now_ms) for call in group))
    return tuple(outcomes)


def group_calls(operation: Execute) -> list[list[PreparedCall]]:
    """Return the calls in groups; the calls of one group may run at the same time."""
    made: list[list[PreparedCall]] = []
    before_alone = True
    for call in operation.calls:
        alone = call.alone or not operation.side_by_side
        if alone or before_alone:
            made.append([])
        made[-1].append(call)
        before_alone = alone
    return made


async def _run_call(call: PreparedCall, call_tool: CallTool, now_ms: Callable[[], float]) -> Outcome:
    """Run one call and return its outcome.

    The model gets the reason when its arguments are refused or the time is over. Of any other failure it gets only the
    exception's type, because the text may hold details of the host.
    """
    started = now_ms()
    limit = asyncio.timeout(call.timeout_seconds)
    value: object = None
    code = message = ""
    try:
        value = call_tool(call.name, call.arguments, call.id)
        if inspect.isawaitable(value):
            async with limit:
                value = await value
    except ToolArgumentError as error:
        code, message = "ARGUMENT_ERROR", str(error)
    except asyncio.CancelledError as error:
        if _is_task_cancelled():
            raise
        code, message = _describe_failure(error)
    except (Exception, SystemExit) as error:  # sys.exit in a tool ends only its call
        code, message = _describe_failure(error)
        if limit.expired():
            code, message = "TOOL_TIMEOUT", f"The tool gave no result within {call.timeout_seconds:g} s."
    return Outcome(None if code else value, code, message, started, now_ms() - started)


def _describe_failure(error: BaseException) -> tuple[str, str]:
    return "INTERNAL_ERROR", f"The tool failed ({type(error).__name__})."


def _is_task_cancelled() -> bool:
    """Return whether this task is being cancelled, and not only what a tool awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
