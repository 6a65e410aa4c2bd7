"""Load on a server of chat completions: requests, delays of texts in streams, open streams."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BODY: Mapping[str, Any] = {
    "messages": [{"role": "user", "content": "How is the weather in Berlin?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}],
}
WARM_UP_REQUESTS = 100


@dataclass(frozen=True)
class Target:
    """Server to send requests to.

    Attributes:
        name: name in the tables.
        model: value of the field `model`.
        pid: process whose CPU and memory are read; 0 for none.
    """

    name: str
    url: str
    token: str
    model: str
    pid: int = 0


async def send_requests(
    target: Target, concurrency: int, count: int, max_seconds: float = math.inf
) -> tuple[float, list[float]]:
    """Send `count` requests, or fewer if they take more than `max_seconds`.

    Returns:
        The seconds of all requests together, and the sorted milliseconds of each.
    """
    left = iter(range(count))
    times: list[float] = []
    body = json.dumps({**BODY, "model": target.model}).encode()

    async def work(session: aiohttp.ClientSession) -> None:
        for _ in left:
            began = time.perf_counter()
            if began >= ends_at:
                return
            async with session.post("/v1/chat/completions", data=body) as response:
                answer = await response.read()
                assert response.status == 200, answer
            times.append(1000 * (time.perf_counter() - began))

    async with _open_session(target, concurrency) as session:
        began = time.perf_counter()
        ends_at = began + max_seconds
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
        return time.perf_counter() - began, sorted(times)


async def measure_delays(target: Target, streams: int, texts: int, pause: float) -> list[float]:
    """Return the sorted milliseconds from sending a text at the provider to reading it here.

    All processes of the machine share the monotonic clock.

    Args:
        target: the server.
        streams: number of streams at the same time.
        texts: number of texts in each.
        pause: seconds between two texts.
    """
    delays: list[float] = []

    async def read(session: aiohttp.ClientSession) -> None:
        async for sent_ns in _stream(session, target, texts, pause):
            delays.append((time.monotonic_ns() - sent_ns) / 1e6)

    async with _open_session(target, streams) as session:
        await asyncio.gather(*(read(session) for _ in range(streams)))
    return sorted(delays)


async def hold_streams(target: Target, streams: int, while_open: Callable[[], Awaitable[None]]) -> int:
    """Open streams, call a function when each has received a text, and close them.

    Returns:
        The number of streams that were open.
    """
    opened, closing = asyncio.Semaphore(0), asyncio.Event()

    async def read(session: aiohttp.ClientSession) -> None:
        async for _ in _stream(session, target, 10_000, 2.0):
            opened.release()
            await closing.wait()
            return

    async with _open_session(target, streams) as session:
        tasks = [asyncio.create_task(read(session)) for _ in range(streams)]
        for _ in range(streams):
            await opened.acquire()
        await while_open()
        closing.set()
        await asyncio.gather(*tasks)
    return streams


async def _stream(session: aiohttp.ClientSession, target: Target, texts: int, pause: float) -> AsyncIterator[int]:
    """Yield the time at which each text of a stream was sent; several texts may arrive in one event."""
    body = {"model": target.model, "messages": [{"role": "user", "content": f"{texts} {pause}"}], "stream": True}
    async with session.post("/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.read()
        async for line in response.content:
            if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
                for sent in (choices[0]["delta"].get("content") or "").split():
                    yield int(sent)


def _open_session(target: Target, connections: int) -> aiohttp.ClientSession:
    headers = {"authorization": f"Bearer {target.token}", "content-type": "application/json"}
    connector = aiohttp.TCPConnector(limit=connections)
    return aiohttp.ClientSession(target.url, headers=headers, connector=connector, timeout=aiohttp.ClientTimeout())
