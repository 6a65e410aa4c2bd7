"""Holding a conversation: the one driver, with Python functions as tools."""

import asyncio
import inspect
import threading
import time
from contextlib import suppress
from contextvars import copy_context

from toolbench.engine.conversation import Conversation
from toolbench.engine.events import EmitEvent, Event, LoopResult
from toolbench.engine.tools.python_tools import PythonTool, PythonTools, to_plain_value
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient


async def converse(conversation: Conversation, text: str, world: RunContext) -> LoopResult:
    """Says `text`, has the calls run and their results fed back until there is an answer, and keeps what came of it in
    the conversation. Every end is a value."""
    ended = await drive(conversation.say(text), world)
    conversation.take(ended)
    return ended


def run_context(endpoint: Endpoint, door: HttpClient, tools: PythonTools, emit: EmitEvent | None = None) -> RunContext:
    """A world of one's own: tools are Python functions, requests are sent as soon as they are wanted, steps are not
    kept. Cancel with `world.cancelled.set()`."""
    alone = _UnlimitedGate()
    return RunContext(
        endpoint=endpoint,
        client=door,
        call_tool=PythonToolRunner(tools),
        gate=alone,
        recorder=alone,
        clock=time.perf_counter,
        cancelled=CancellationToken(),
        emit=emit or _ignore_event,
    )


class PythonToolRunner:
    """Runs Python tools by name. Every call is awaited: async functions on this loop, others in a thread of their own,
    so that calls may run side by side and a time limit holds. A thread whose time is over runs on unheard until its
    function returns; it keeps no process alive."""

    def __init__(self, tools: PythonTools) -> None:
        self._tools = tools

    async def __call__(self, name: str, arguments: JsonObject, call_id: str) -> object:
        tool = self._tools.by_name[name]
        value = tool.call(arguments) if tool.is_async else await _run_in_thread(tool, arguments)
        return to_plain_value(await value if inspect.isawaitable(value) else value)


async def _run_in_thread(tool: PythonTool, arguments: JsonObject) -> object:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[tuple[object, Exception | None]] = loop.create_future()
    context = copy_context()

    def tell(value: object, failure: Exception | None) -> None:
        if not came.done():
            came.set_result((value, failure))

    def work() -> None:
        value: object = None
        failure: Exception | None = None
        try:
            value = context.run(tool.call, arguments)
        except Exception as error:
            failure = error
        except BaseException as error:  # a tool that ends the program ends its own call
            failure = RuntimeError(type(error).__name__)
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(tell, value, failure)

    threading.Thread(target=work, name=f"tool {tool.definition.name}", daemon=True).start()
    value, failure = await came
    if failure is not None:
        raise failure
    return value


class _UnlimitedGate:
    """A gate that lets everything through and a recorder that keeps nothing."""

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def record(self, step: ExchangeStep | ToolStep) -> None: ...


def _ignore_event(event: Event) -> None:
    """Nobody listens."""
