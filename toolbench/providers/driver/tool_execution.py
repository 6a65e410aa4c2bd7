"""Running the calls of one answer: side by side where that is allowed, results in call order."""

import asyncio
import inspect
from collections.abc import Callable

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Execute, Outcome, PreparedCall
from toolbench.engine.types import JsonObject

CallTool = Callable[[str, JsonObject, str], object]


async def run_calls(wanted: Execute, call_tool: CallTool, now_ms: Callable[[], float]) -> tuple[Outcome, ...]:
    """One outcome per call, in call order. A tool's failure is a value; only this task's own cancellation passes
    through, and stops what is under way. A call runs beside others only while it awaits something."""
    outcomes: list[Outcome] = []
    for group in group_calls(wanted):
        if len(group) == 1:
            outcomes.append(await _run_call(group[0], call_tool, now_ms))
        else:
            outcomes += await asyncio.gather(*(_run_call(call, call_tool, now_ms) for call in group))
    return tuple(outcomes)


def group_calls(wanted: Execute) -> list[list[PreparedCall]]:
    """The calls that may run at the same time, group after group."""
    made: list[list[PreparedCall]] = []
    before_alone = True
    for call in wanted.calls:
        alone = call.alone or not wanted.side_by_side
        if alone or before_alone:
            made.append([])
        made[-1].append(call)
        before_alone = alone
    return made


async def _run_call(call: PreparedCall, call_tool: CallTool, now_ms: Callable[[], float]) -> Outcome:
    """The model learns why its arguments were refused and that time ran out; of any other failure only the kind, since
    the text of an exception may hold what is none of its business."""
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
    except (Exception, SystemExit) as error:  # a tool that ends the program ends its own call
        code, message = _describe_failure(error)
        if limit.expired():
            code, message = "TOOL_TIMEOUT", f"The tool gave no result within {call.timeout_seconds:g} s."
    return Outcome(None if code else value, code, message, started, now_ms() - started)


def _describe_failure(error: BaseException) -> tuple[str, str]:
    return "INTERNAL_ERROR", f"The tool failed ({type(error).__name__})."


def _is_task_cancelled() -> bool:
    """Whether it is this task that is being cancelled, and not something a tool waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
