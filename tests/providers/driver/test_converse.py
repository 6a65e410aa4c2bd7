import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from pydantic import BaseModel

from toolbench.engine.conversation import Conversation
from toolbench.engine.events import EndReason, Event, LoopResult
from toolbench.engine.tools.python_functions import PythonTool, PythonTools, python_tool
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.converse import build_run_context, converse
from toolbench.providers.endpoint import Timeouts
from toolbench.providers.http.client import HttpClient
from toolbench.providers.scripted_server import ScriptedServer, text_reply, tool_call_reply


class Weather(BaseModel):
    city: str
    degrees: int


def get_weather(city: str) -> Weather:
    """The weather in a city."""
    return Weather(city=city, degrees=len(city))


def run_conversation(
    provider: ScriptedServer, tools: PythonTools, *texts: str, listener: Callable[[Event], None] | None = None
) -> tuple[Conversation, list[LoopResult]]:
    """Run a conversation with these user messages, one after another."""
    conversation = Conversation("scripted", tools.registry)

    async def talk() -> list[LoopResult]:
        async with HttpClient() as client:
            context = build_run_context(provider.endpoint(), client, tools, listener)
            return [await converse(conversation, text, context) for text in texts]

    return conversation, asyncio.run(talk())


def list_results(conversation: Conversation) -> list[JsonObject]:
    """Return the results of calls that were sent to the model."""
    return [json.loads(message["content"]) for message in conversation.history if message["role"] == "tool"]


def test_converse_calls_python_functions_and_sends_their_results(provider: ScriptedServer) -> None:
    provider.set_script(
        tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("4 degrees."), text_reply("You are welcome.")
    )

    conversation, (first, second) = run_conversation(
        provider, PythonTools.from_functions(get_weather), "Weather in Oslo?", "Thanks."
    )

    assert (first.final_text, second.final_text) == ("4 degrees.", "You are welcome.")
    assert list_results(conversation)[0]["data"] == {"city": "Oslo", "degrees": 4}
    assert [len(seen.json()["messages"]) for seen in provider.seen] == [1, 3, 5]


def test_converse_runs_blocking_functions_of_one_answer_in_parallel(provider: ScriptedServer) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def meet(name: str) -> str:
        meeting.wait()
        return name

    provider.set_script(tool_call_reply(("meet", {"name": "a"}), ("meet", {"name": "b"})), text_reply("Both."))

    conversation, _ = run_conversation(provider, PythonTools.from_functions(meet), "Meet.")

    assert [item["data"]["value"] for item in list_results(conversation)] == ["a", "b"]


def test_converse_sends_every_failure_of_a_function_to_the_model(provider: ScriptedServer) -> None:
    release = threading.Event()

    def stuck() -> None:
        release.wait(20)

    def leave() -> None:
        sys.exit(3)

    def iterate() -> None:
        raise StopIteration

    def opaque() -> object:
        return object()

    tools: list[PythonTool] = [
        python_tool(stuck, timeout_seconds=0.01),
        *(python_tool(function) for function in (leave, iterate, opaque, get_weather)),
    ]
    calls: list[tuple[str, JsonObject]] = [(tool.definition.name, {}) for tool in tools]
    provider.set_script(tool_call_reply(*calls), text_reply("Well."))

    conversation, (loop_result,) = run_conversation(provider, PythonTools.from_functions(*tools), "Go.")
    release.set()

    assert loop_result.end is EndReason.FINAL
    assert [item["errors"][0]["code"] for item in list_results(conversation)] == [
        "TOOL_TIMEOUT",
        "INTERNAL_ERROR",
        "INTERNAL_ERROR",
        "TOOL_OUTPUT_SERIALIZATION_ERROR",
        "ARGUMENT_ERROR",
    ]


def test_converse_with_failing_endpoint_returns_and_adds_no_history(provider: ScriptedServer) -> None:
    async def run_failing() -> LoopResult:
        conversation = Conversation("scripted")
        async with HttpClient() as client:
            endpoint = replace(provider.endpoint(), max_attempts=1, timeouts=Timeouts(deadline=20))
            loop_result = await converse(conversation, "Hello?", build_run_context(endpoint, client, PythonTools()))
        assert conversation.history == ()
        return loop_result

    assert asyncio.run(run_failing()).end is EndReason.PROVIDER_ERROR


def test_converse_passes_events_to_the_listener(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("4 degrees."))
    received: list[Event] = []

    run_conversation(provider, PythonTools.from_functions(get_weather), "Weather?", listener=received.append)

    assert [event.type for event in received if event.type.startswith("tool")] == ["tool_call_start", "tool_call_end"]


@pytest.mark.parametrize("parallel", [True, False])
def test_converse_runs_calls_in_parallel_only_if_policy_allows(provider: ScriptedServer, parallel: bool) -> None:
    inside, max_inside = 0, 0

    async def count() -> None:
        nonlocal inside, max_inside
        inside += 1
        max_inside = max(max_inside, inside)
        await asyncio.sleep(0)
        inside -= 1

    tools = PythonTools.from_functions(count)
    conversation = Conversation.with_settings(
        "scripted",
        tools.registry,
        request_overrides={"parallel_tool_calls": parallel},
        max_tool_calls_per_turn=3,
    )
    provider.set_script(tool_call_reply(("count", {}), ("count", {}), ("count", {})), text_reply("Done."))

    async def talk() -> None:
        async with HttpClient() as client:
            await converse(conversation, "Go.", build_run_context(provider.endpoint(), client, tools))

    asyncio.run(talk())

    assert max_inside == (3 if parallel else 1)


def test_converse_awaits_what_a_function_returns(provider: ScriptedServer) -> None:
    async def slow(city: str) -> str:
        await asyncio.sleep(0)
        return city

    def begun(city: str) -> Awaitable[str]:
        return slow(city)

    provider.set_script(tool_call_reply(("begun", {"city": "Oslo"})), text_reply("Done."))
    conversation, _ = run_conversation(provider, PythonTools.from_functions(begun), "Go.")

    assert list_results(conversation)[0]["data"] == {"value": "Oslo"}
