"""Running gateways, simulated models, tokens and aliases for tests."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from django.contrib.auth.models import User
from django.db import connections

from toolbench.gateway.server import serve
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import GatewayTrace, Model, Provider
from toolbench.lab.serving.aliases import AliasChoice, save_alias
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, error_reply
from toolbench.providers.simulated.server import SimulatedServer

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Return the weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]}},
                "required": ["city"],
            },
        },
    }
]
MESSAGES_TOOLS = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]
RESPONSES_TOOLS: list[Any] = [{"type": "function", **tool["function"]} for tool in TOOLS]
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
POLL_SECONDS = 0.05
POLL_TIMEOUT_SECONDS = 30
_Value = TypeVar("_Value")
QUESTION = [{"role": "user", "content": "How is the weather in Berlin?"}]


def make_token(*scopes: str) -> str:
    user, _ = User.objects.get_or_create(username="program")
    set_role(user, Role.OPERATOR)
    user.save()
    return create_api_token(user, "app", scopes or ("serve",), None)[1]


def make_provider_at(url: str, key: str = "", **fields: object) -> Provider:
    stored = {"key_source": "stored", "key_encrypted": encrypt(key)} if key else {}
    return Provider.objects.create(name=f"At {url}", base_url=url, **(stored | {"max_attempts": 1, **fields}))


def make_alias(provider: Provider, model: str, name: str = "", *, price: object = None, **fields: Any) -> str:
    """Save an alias. Without `price`, a model on this machine costs nothing."""
    constraint = "response_format" if fields.get("method") == "constrained" else ""
    defaults = {"canonical": model, "price": price or {}, "constraint": constraint}
    row, _ = Model.objects.get_or_create(provider=provider, name=model, defaults=defaults)
    return save_alias(AliasChoice(name or model.replace(" ", "-"), row.pk, **fields), owner=None).name


async def in_database(work: Callable[..., _Value], *arguments: object, **fields: object) -> _Value:
    """Call a function that uses the database in a thread, close the thread's connections and return the result."""

    def call() -> _Value:
        try:
            return work(*arguments, **fields)
        finally:
            connections.close_all()

    return await asyncio.to_thread(call)


@dataclass(frozen=True)
class RunningGateway:
    """Address of a gateway and a session that sends the token."""

    url: str
    token: str
    session: aiohttp.ClientSession


@asynccontextmanager
async def run_gateway(token: str) -> AsyncIterator[RunningGateway]:
    async with (
        serve("127.0.0.1", 0) as url,
        aiohttp.ClientSession(url, headers={"authorization": f"Bearer {token}"}) as session,
    ):
        yield RunningGateway(url, token, session)


@asynccontextmanager
async def run_simulated() -> AsyncIterator[SimulatedServer]:
    server = SimulatedServer(latency_factor=0)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def chat_body(**more: Any) -> dict[str, Any]:
    return {"model": "weather", "messages": QUESTION, "tools": TOOLS, **more}


def messages_body(**more: Any) -> dict[str, Any]:
    return {"model": "weather", "max_tokens": 100, "messages": QUESTION, "tools": MESSAGES_TOOLS, **more}


@asynccontextmanager
async def scripted_gateway(
    *replies: ScriptedReply, **fields: Any
) -> AsyncIterator[tuple[RunningGateway, ScriptedServer]]:
    """Run a gateway whose alias `weather` leads to a scripted server."""
    with ScriptedServer(replies) as upstream:
        provider = await in_database(make_provider_at, upstream.base_url, "sk-upstream-4711")
        await in_database(make_alias, provider, "m", "weather", **fields)
        async with run_gateway(await in_database(make_token)) as gateway:
            yield gateway, upstream


@asynccontextmanager
async def gateway_with_fallback(
    reply: ScriptedReply, fallback_provider: Mapping[str, object] | None = None, **fields: Any
) -> AsyncIterator[RunningGateway]:
    """Run a gateway whose alias `weather` gets an error and has the fallback alias `second`, which gets `reply`.

    Args:
        fallback_provider: fields of the provider of `second`.
    """
    with ScriptedServer([reply]) as second:
        provider = await in_database(make_provider_at, second.base_url, **(fallback_provider or {}))
        await in_database(make_alias, provider, "m2", "second")
        async with scripted_gateway(error_reply(500), fallbacks=("second",), **fields) as (gateway, _):
            yield gateway


@asynccontextmanager
async def simulated_gateway(persona: str) -> AsyncIterator[RunningGateway]:
    """Run a gateway whose alias `weather` leads to a simulated model."""
    async with run_simulated() as simulated:
        provider = await in_database(make_provider_at, simulated.url, simulated.key)
        await in_database(make_alias, provider, persona, "weather")
        async with run_gateway(await in_database(make_token)) as gateway:
            yield gateway


def stream_reply(*texts: str, arguments: str = "", pause: float = 0.0) -> ScriptedReply:
    """Return a streamed reply with these texts and, with `arguments`, a call of get_weather."""
    deltas: list[Any] = [{"content": text} for text in texts]
    function = {"name": "get_weather", "arguments": arguments}
    deltas += [{"tool_calls": [{"index": 0, "id": "c1", "function": function}]}] if arguments else []
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    return ScriptedReply(200, {"content-type": "text/event-stream"}, chunks, pause=pause)


async def post(gateway: RunningGateway, body: Any, path: str = CHAT, **headers: str) -> tuple[int, Any, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with gateway.session.post(path, data=io.BytesIO(data), headers=headers) as response:
        return response.status, await response.json(content_type=None), response.headers


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


async def read_traces(count: int = 1) -> list[GatewayTrace]:
    """Return the stored traces as soon as there are `count` of them, oldest first."""
    async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
        while len(traces := await in_database(lambda: list(GatewayTrace.objects.order_by("pk")))) < count:
            await asyncio.sleep(POLL_SECONDS)
    return traces
