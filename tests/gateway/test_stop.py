"""Stop of the gateway while requests run."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from tests.gateway.running import (
    CHAT,
    POLL_TIMEOUT_SECONDS,
    chat_body,
    in_database,
    make_alias,
    make_provider_at,
    make_token,
    read_traces,
    run,
)
from toolbench.gateway import server
from toolbench.lab.models import GatewaySpending
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_stopped_gateway_cancels_a_running_request_and_stores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0.1)

    async def body() -> None:
        with ScriptedServer([ScriptedReply(ending=ConnectionEnd.HANG, declared=10)]) as upstream:
            provider = await in_database(make_provider_at, upstream.base_url)
            await in_database(make_alias, provider, "m", "weather", price={"input": 1.0, "output": 1.0})
            token = await in_database(make_token)
            async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
                async with asyncio.timeout(POLL_TIMEOUT_SECONDS), server.serve("127.0.0.1", 0) as url:
                    request = asyncio.create_task(session.post(f"{url}{CHAT}", json=chat_body()))
                    assert await asyncio.to_thread(upstream.arrived.acquire, timeout=POLL_TIMEOUT_SECONDS)
                with suppress(aiohttp.ClientError):
                    await request
            (trace,) = await read_traces()
            assert (trace.status, trace.requests) == (499, 1)
            assert await in_database(lambda: GatewaySpending.objects.get().unknown) == 1

    run(body)
