"""Addresses at which the gateway listens."""

import asyncio
import socket
from urllib.parse import urlsplit

import aiohttp
import pytest

from toolbench.gateway.__main__ import main
from toolbench.gateway.server import serve
from toolbench.providers.ready_line import START_FAILED_EXIT_CODE


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="one socket cannot serve both IPv6 and IPv4 here")
@pytest.mark.parametrize(("host", "client_host"), [("::1", "[::1]"), ("::", "127.0.0.1")])
def test_gateway_with_an_ipv6_host_answers_at_its_url(host: str, client_host: str) -> None:
    async def request_health() -> None:
        async with serve(host, 0) as url, aiohttp.ClientSession() as session:
            assert urlsplit(url).hostname == host
            async with session.get(f"http://{client_host}:{urlsplit(url).port}/health") as answer:
                assert answer.status == 200

    asyncio.run(request_health())


def test_gateway_with_a_used_port_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolbench.gateway.__main__.freeze_loaded_objects", lambda: None)
    monkeypatch.setattr("toolbench.gateway.__main__.collect_rarely", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as used_socket:
        port = used_socket.getsockname()[1]
        assert main(["--port", str(port)]) == START_FAILED_EXIT_CODE
    error_text = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use): end the program" in error_text
