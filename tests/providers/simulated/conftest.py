from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import pytest

from toolbench.providers.simulated.server import SimulatedServer

Serving = Callable[..., AbstractAsyncContextManager[aiohttp.ClientSession]]


@pytest.fixture
def serving() -> Serving:
    """Return a context that runs the personas without latency, or another server; it yields a client with the key."""

    @asynccontextmanager
    async def serve(server: SimulatedServer | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        server = server or SimulatedServer(latency_factor=0)
        await server.start()
        try:
            headers = {"Authorization": f"Bearer {server.key}"}
            async with aiohttp.ClientSession(base_url=server.url, headers=headers) as client:
                yield client
        finally:
            await server.stop()

    return serve
