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
        The result of the loop; errors, deadline and cancellation are values in it, not exceptions.
    """
    result = await drive(conversation.say(text), context)
    conversation.take(result)
    return result


def build_run_context(
    endpoint: Endpoint, client: HttpClient, tools: PythonTools, emit: EmitEvent | None = None
) -> RunContext:
    """Build a run context for a single conversation with Python functions as tools.

    Requests are sent without limits and steps are not stored. To end the run early, call `set` on the attribute
    `cancelled` of the result.

    Args:
        endpoint: the model to talk to.
        client: an open HTTP client.
        tools: the functions that the model may call.
        emit: receives the loop's events; None to drop them.
    """
    gate = _UnlimitedGate()
    return RunContext(
        endpoint=endpoint,
        client=client,
        call_tool=PythonToolRunner(tools),
        gate=gate,
        recorder=gate,
        clock=time.perf_counter,
        cancelled=CancellationToken(),
        emit=emit or _ignore_event,
    )


class PythonToolRunner:
    """Callable that runs Python tools by name, for `RunContext.call_tool`.

    Async functions run on the event loop. Any other function runs in a daemon thread of its own, so that calls may run
    in parallel and a time limit applies. After a timeout the thread continues until its function returns, and the
    result is dropped.
    """

    def __init__(self, tools: PythonTools) -> None:
        self._tools = tools

    async def __call__(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Call the tool and return its result as a plain value.

        Raises:
            KeyError: no tool has this name.
            ToolArgumentError: the arguments do not fit the function.
            RuntimeError: a function that is not async raised an exception such as `SystemExit`.
            Exception: the tool's own error.
        """
        tool = self._tools.by_name[name]
        value = tool.call(arguments) if tool.is_async else await _run_in_thread(tool, arguments)
        return to_plain_value(await value if inspect.isawaitable(value) else value)


async def _run_in_thread(tool: PythonTool, arguments: JsonObject) -> object:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[object, Exception | None]] = loop.create_future()
    context = copy_context()

    def set_result(value: object, failure: Exception | None) -> None:
        if not future.done():
            future.set_result((value, failure))

    def run_tool() -> None:
        value: object = None
        failure: Exception | None = None
        try:
            value = context.run(tool.call, arguments)
        except Exception as error:
            failure = error
        except BaseException as error:  # sys.exit in a tool ends only its call
            failure = RuntimeError(type(error).__name__)
        with suppress(RuntimeError):  # raised when the loop is closed; no task waits for the result then
            loop.call_soon_threadsafe(set_result, value, failure)

    threading.Thread(target=run_tool, name=f"tool {tool.definition.name}", daemon=True).start()
    value, failure = await future
    if failure is not None:
        raise failure
    return value


class _UnlimitedGate:
    """Gate without limits that is also a recorder and stores nothing."""

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def record(self, step: ExchangeStep | ToolStep) -> None: ...


def _ignore_event(event: Event) -> None: ...
