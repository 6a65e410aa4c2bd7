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


def talked(
    provider: ScriptedServer, tools: PythonTools, *texts: str, heard: Callable[[Event], None] | None = None
) -> tuple[Conversation, list[LoopResult]]:
    """A conversation in which these texts are said one after another."""
    conversation = Conversation("scripted", tools.registry)

    async def talk() -> list[LoopResult]:
        async with HttpClient() as client:
            context = build_run_context(provider.endpoint(), client, tools, heard)
            return [await converse(conversation, text, context) for text in texts]

    return conversation, asyncio.run(talk())


def told(conversation: Conversation) -> list[JsonObject]:
    """What the model was told about its calls."""
    return [json.loads(message["content"]) for message in conversation.history if message["role"] == "tool"]


def test_python_functions_are_called_and_their_results_fed_back(provider: ScriptedServer) -> None:
    provider.set_script(
        tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("4 degrees."), text_reply("You are welcome.")
    )

    conversation, (first, second) = talked(provider, PythonTools.of(get_weather), "Weather in Oslo?", "Thanks.")

    assert (first.final_text, second.final_text) == ("4 degrees.", "You are welcome.")
    assert told(conversation)[0]["data"] == {"city": "Oslo", "degrees": 4}
    assert [len(seen.json()["messages"]) for seen in provider.seen] == [1, 3, 5]


def test_calls_of_one_answer_run_side_by_side_also_where_functions_block(provider: ScriptedServer) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def meet(name: str) -> str:
        meeting.wait()
        return name

    provider.set_script(tool_call_reply(("meet", {"name": "a"}), ("meet", {"name": "b"})), text_reply("Both."))

    conversation, _ = talked(provider, PythonTools.of(meet), "Meet.")

    assert [item["data"]["value"] for item in told(conversation)] == ["a", "b"]


def test_every_failure_of_a_function_is_told_to_the_model(provider: ScriptedServer) -> None:
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
    wanted: list[tuple[str, JsonObject]] = [(tool.definition.name, {}) for tool in tools]
    provider.set_script(tool_call_reply(*wanted), text_reply("Well."))

    conversation, (ended,) = talked(provider, PythonTools.of(*tools), "Go.")
    release.set()

    assert ended.end is EndReason.FINAL
    assert [item["errors"][0]["code"] for item in told(conversation)] == [
        "TOOL_TIMEOUT",
        "INTERNAL_ERROR",
        "INTERNAL_ERROR",
        "TOOL_OUTPUT_SERIALIZATION_ERROR",
        "ARGUMENT_ERROR",
    ]


def test_a_conversation_outlives_an_endpoint_that_fails(provider: ScriptedServer) -> None:
    async def refused() -> LoopResult:
        conversation = Conversation("scripted")
        async with HttpClient() as client:
            endpoint = replace(provider.endpoint(), max_attempts=1, timeouts=Timeouts(deadline=20))
            ended = await converse(conversation, "Hello?", build_run_context(endpoint, client, PythonTools()))
        assert conversation.history == ()
        return ended

    assert asyncio.run(refused()).end is EndReason.PROVIDER_ERROR


def test_who_listens_hears_the_loops_events(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("4 degrees."))
    received: list[Event] = []

    talked(provider, PythonTools.of(get_weather), "Weather?", heard=received.append)

    assert [event.type for event in received if event.type.startswith("tool")] == ["tool_call_start", "tool_call_end"]


@pytest.mark.parametrize("parallel", [True, False])
def test_the_policy_decides_whether_calls_run_side_by_side(provider: ScriptedServer, parallel: bool) -> None:
    inside, most = 0, 0

    async def count() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    tools = PythonTools.of(count)
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

    assert most == (3 if parallel else 1)


def test_what_a_function_only_begins_is_waited_for(provider: ScriptedServer) -> None:
    async def slow(city: str) -> str:
        await asyncio.sleep(0)
        return city

    def begun(city: str) -> Awaitable[str]:
        return slow(city)

    provider.set_script(tool_call_reply(("begun", {"city": "Oslo"})), text_reply("Done."))
    conversation, _ = talked(provider, PythonTools.of(begun), "Go.")

    assert told(conversation)[0]["data"] == {"value": "Oslo"}
