"""Conversation with a model that has Python functions as tools."""

import asyncio
import inspect
import threading
import time
from contextlib import suppress
from contextvars import copy_context

from toolbench.engine.conversation import Conversation
from toolbench.engine.events import EmitEvent, Event, LoopResult
from toolbench.engine.tools.python_functions import PythonTool, PythonTools, to_plain_value
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient


async def converse(conversation: Conversation, text: str, context: RunContext) -> LoopResult:
    """Send a user message, run tool calls until the model answers, and add the result to the conversation.

    Returns:
        How the run ended; errors, deadline and cancellation are values, not exceptions.
    """
    ended = await drive(conversation.say(text), context)
    conversation.take(ended)
    return ended


def run_context(
    endpoint: Endpoint, client: HttpClient, tools: PythonTools, emit: EmitEvent | None = None
) -> RunContext:
    """Build a run context for a single conversation with Python functions as tools.

    Requests are sent without limits and steps are not stored. To cancel, call `cancelled.set()` on the result.
    """
    alone = _UnlimitedGate()
    return RunContext(
        endpoint=endpoint,
        client=client,
        call_tool=PythonToolRunner(tools),
        gate=alone,
        recorder=alone,
        clock=time.perf_counter,
        cancelled=CancellationToken(),
        emit=emit or _ignore_event,
    )


class PythonToolRunner:
    """Runner that calls Python tools by name.

    Async functions run on the event loop, other functions each in a daemon thread, so that calls may run in parallel
    and a time limit holds. After a timeout the thread continues until its function returns, and the result is dropped.
    It does not keep the process alive.
    """

    def __init__(self, tools: PythonTools) -> None:
        self._tools = tools

    async def __call__(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Call the tool and return its result as a plain value."""
        tool = self._tools.by_name[name]
        value = tool.call(arguments) if tool.is_async else await _run_in_thread(tool, arguments)
        return to_plain_value(await value if inspect.isawaitable(value) else value)


async def _run_in_thread(tool: PythonTool, arguments: JsonObject) -> object:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[tuple[object, Exception | None]] = loop.create_future()
    context = copy_context()

    def set_result(value: object, failure: Exception | None) -> None:
        if not came.done():
            came.set_result((value, failure))

    def work() -> None:
        value: object = None
        failure: Exception | None = None
        try:
            value = context.run(tool.call, arguments)
        except Exception as error:
            failure = error
        except BaseException as error:  # sys.exit in a tool ends only its call
            failure = RuntimeError(type(error).__name__)
        with suppress(RuntimeError):  # the loop is closed, so no task waits for the result
            loop.call_soon_threadsafe(set_result, value, failure)

    threading.Thread(target=work, name=f"tool {tool.definition.name}", daemon=True).start()
    value, failure = await came
    if failure is not None:
        raise failure
    return value


class _UnlimitedGate:
    """Gate without limits, and recorder that stores nothing."""

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def record(self, step: ExchangeStep | ToolStep) -> None: ...


def _ignore_event(event: Event) -> None:
    """Do nothing with an event."""
