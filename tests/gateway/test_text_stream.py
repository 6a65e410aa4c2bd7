"""Order of the chunks of a stream: plain text is sent at once, and text that may be a start marker is withheld."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    POLL_TIMEOUT_SECONDS,
    RESPONSES_TOOLS,
    chat_body,
    messages_body,
    run,
    scripted_gateway,
    stream_reply,
)
from toolbench.engine.events import Event
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.gateway.text_stream import TextListener, TextSender
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply

pytestmark = pytest.mark.django_db(transaction=True)
RESPONSES = "/v1/responses"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: chat_body(stream=True),
    MESSAGES: messages_body(stream=True),
    RESPONSES: {"model": "weather", "input": "Hi", "tools": RESPONSES_TOOLS, "stream": True},
}


class PacedUpstream:
    """Scripted stream that sends each text only after the test has permitted it."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self._permissions = threading.Semaphore(0)
        self.sent: list[str] = []

    def permit(self) -> None:
        self._permissions.release()

    @property
    def reply(self) -> ScriptedReply:
        headers = {"content-type": "text/event-stream"}
        return ScriptedReply(200, headers, self._iterate_chunks(), ending=ConnectionEnd.CLOSE)

    def _iterate_chunks(self) -> Iterator[bytes]:
        for text in self._texts:
            assert self._permissions.acquire(timeout=POLL_TIMEOUT_SECONDS)
            self.sent.append(text)
            yield render_chunk({"choices": [{"index": 0, "delta": {"content": text}}]})
        assert self._permissions.acquire(timeout=POLL_TIMEOUT_SECONDS)
        yield render_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"


def render_chunk(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def find_text(event: Any) -> str:
    """Return the text in an event of any dialect."""
    if event.get("choices"):
        return str(event["choices"][0]["delta"].get("content") or "")
    delta = event.get("delta") or {}
    return str(delta if event.get("type") == "response.output_text.delta" else delta.get("text", ""))


async def iterate_texts(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    async for line in response.content:
        if line.startswith(b"data: {") and (text := find_text(json.loads(line[6:]))):
            yield text


@pytest.mark.parametrize("path", BODIES)
def test_text_stream_sends_plain_text_before_next_chunk_arrives(path: str) -> None:
    async def exchange() -> None:
        upstream = PacedUpstream("It ", "rains ", "in Berlin.")
        async with scripted_gateway(upstream.reply) as (gateway, _):
            upstream.permit()
            async with gateway.session.post(path, json=BODIES[path]) as response:
                received = []
                async for text in iterate_texts(response):
                    received.append(text)
                    assert upstream.sent == received  # the upstream waits for the permission
                    upstream.permit()
                assert received == ["It ", "rains ", "in Berlin."]

    run(exchange)


def test_text_stream_withholds_possible_start_marker() -> None:
    async def exchange() -> None:
        upstream = PacedUpstream("Look: <tool_", "box> is a tag.")
        async with scripted_gateway(upstream.reply, strategy="production+text_calls_healed") as (gateway, _):
            upstream.permit()
            async with gateway.session.post(CHAT, json=BODIES[CHAT]) as response:
                received = ""
                async for text in iterate_texts(response):
                    if not received:
                        assert text.strip() == "Look:"
                        assert len(upstream.sent) == 1
                        upstream.permit()
                        upstream.permit()
                    received += text
                assert received == "Look: <tool_box> is a tag."

    run(exchange)


@pytest.mark.parametrize(
    ("fields", "texts", "expected"),
    [
        ({"method": "constrained"}, ("\n\n", '{"final": "It rains."}'), "It rains."),
        ({"method": "text_json"}, ("<think>maybe [x]</think>", "It rains."), "It rains."),
        ({"method": "text_json"}, ("<think>hm</think>\n", "The set is", " {1,2}.\n"), "The set is {1,2}."),
        ({"method": "text_json"}, ("\n\n", "Hello", "\n"), "Hello\n"),
        ({"method": "text_json"}, ("It may.\n", "</think>\n", "The set is {1,2}."), "It may.\n\nThe set is {1,2}."),
        ({"strategy": "production+text_calls_healed"}, ("<think>hm</think>", "It rains", " <"), "It rains <"),
    ],
)
def test_text_stream_without_blanks_and_reasoning_is_complete(
    fields: dict[str, str], texts: tuple[str, ...], expected: str
) -> None:
    async def exchange() -> None:
        async with (
            scripted_gateway(stream_reply(*texts), **fields) as (gateway, _),
            gateway.session.post(CHAT, json=BODIES[CHAT]) as response,
        ):
            assert "".join([text async for text in iterate_texts(response)]) == expected

    run(exchange)


@pytest.mark.parametrize("method", ["text_json", "constrained"])
def test_text_stream_without_tools_withholds_only_reasoning(method: str) -> None:
    async def exchange() -> None:
        body = {key: value for key, value in BODIES[CHAT].items() if key != "tools"}
        async with (
            scripted_gateway(stream_reply("<think>x</think>", "Hi"), method=method) as (gateway, _),
            gateway.session.post(CHAT, json=body) as response,
        ):
            assert [text async for text in iterate_texts(response)] == ["Hi"]

    run(exchange)
    received: list[str] = []
    listener = TextListener(Policy(method=method), ToolRegistry(), received.append)
    listener.receive(Event("llm_delta", 0, {"text": '{"city":"Bonn"'}))
    assert received == ['{"city":"Bonn"']


def test_text_listener_for_template_without_tools_has_no_reasoning() -> None:
    received: list[str] = []
    listener = TextListener(Policy(method="template"), ToolRegistry(), received.append)
    listener.receive(Event("llm_delta", 0, {"text": "<think>x</think>Hi"}))
    assert received == ["Hi"]


def test_text_sender_cancelled_while_waiting_leaves_no_task() -> None:
    async def wait_and_leave() -> None:
        turn = asyncio.create_task(asyncio.Event().wait())
        waiting = asyncio.create_task(TextSender().wait_for_part(turn))
        await asyncio.sleep(0)
        for task in (waiting, turn):
            task.cancel()
            await asyncio.wait({task})
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(wait_and_leave)
