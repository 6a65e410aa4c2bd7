"""Addresses at which the gateway listens."""

import asyncio
import socket
from urllib.parse import urlsplit

import aiohttp
import pytest

from toolbench.gateway.server import serve


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="one socket cannot serve both IPv6 and IPv4 here")
@pytest.mark.parametrize(("host", "client_host"), [("::1", "[::1]"), ("::", "127.0.0.1")])
def test_gateway_with_an_ipv6_host_answers_at_its_url(host: str, client_host: str) -> None:
    async def request_health() -> None:
        async with serve(host, 0) as url, aiohttp.ClientSession() as session:
            assert urlsplit(url).hostname == host
            async with session.get(f"http://{client_host}:{urlsplit(url).port}/health") as answer:
                assert answer.status == 200

    asyncio.run(request_health())
