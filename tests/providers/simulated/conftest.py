from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import pytest

from toolbench.providers.simulated.server import SimulatedServer

Serving = Callable[[], AbstractAsyncContextManager[aiohttp.ClientSession]]


@pytest.fixture
def serving() -> Serving:
    """Serves the personas without their latency, and gives a client that holds the key."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[aiohttp.ClientSession]:
        server = SimulatedServer(latency=0)
        await server.start()
        try:
            headers = {"Authorization": f"Bearer {server.key}"}
            async with aiohttp.ClientSession(base_url=server.url, headers=headers) as client:
                yield client
        finally:
            await server.stop()

    return serve
