"""What a request and a trial cost in CPU and in time, beside bare aiohttp in the same run.

`python -m benchmarks.loop --concurrency 50 --requests 1500 --rounds 3`. Ways are measured in turns, one round each,
so that a busy machine harms all alike; the ratios are what counts. A trial is three requests and two tool executions;
its limit is C / (3 * latency) trials a second."""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from toolbench.engine.events import End
from toolbench.engine.loop import LoopPlan
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy import resolve
from toolbench.engine.tools import ToolDefinition, ToolRegistry
from toolbench.providers.door import Door
from toolbench.providers.driving import World, drive
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.recording import ExchangeStep, ToolStep

LATENCY = 0.2
REQUESTS_PER_TRIAL = 3
KEY = "sk-benchmark-key"
ASKED = b'{"model":"bench","messages":[{"role":"tool","content":"%s"},{"role":"tool","content":""}]}' % (b"x" * 2000)
WEATHER = ToolDefinition(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}, "note": {"type": "string"}}, "required": ["city"]},
)


class Kept:
    """Keeps every step in memory and lets everything through."""

    def __init__(self) -> None:
        self.steps = 0
        self.bytes = 0

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps += 1
        if isinstance(step, ExchangeStep):
            self.bytes += len(step.request_body) + len(step.response_body)

    async def reserve(self) -> None:
        return None

    async def back_off(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


Job = Callable[[], Awaitable[None]]


async def bare(endpoint: Endpoint, run: Callable[[Job], Awaitable[None]]) -> None:
    url = endpoint.url("chat/completions")
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def job() -> None:
            async with session.post(url, data=ASKED, headers=headers, timeout=timeout) as answer:
                await answer.read()

        await run(job)


async def door(endpoint: Endpoint, run: Callable[[Job], Awaitable[None]]) -> None:
    async with Door() as opened:

        async def job() -> None:
            exchange = opened.open(endpoint, "chat/completions", ASKED)
            await opened.carry(exchange)
            assert exchange.error() is None

        await run(job)


async def trial(endpoint: Endpoint, run: Callable[[Job], Awaitable[None]]) -> None:
    plan = LoopPlan(
        model="bench",
        policy=resolve([]).policy,
        system="Use the tool twice, then say Done.",
        user_text="x" * 1000,
        tools=ToolRegistry((WEATHER,)),
    )
    kept = Kept()

    def tool(name: str, arguments: JsonObject, call_id: str) -> object:
        return {"city": arguments["city"], "sky": "grey"}

    async with Door() as opened:

        async def job() -> None:
            world = World(endpoint, opened, tool, kept, kept, time.perf_counter, asyncio.Event(), lambda event: None)
            ended = await drive(plan, world)
            assert ended.end is End.FINAL

        await run(job)
    assert kept.steps
    assert kept.steps % (REQUESTS_PER_TRIAL + 2) == 0


@dataclass(frozen=True, slots=True)
class Measured:
    """Per job: CPU of this process in microseconds; and jobs per second of the clock on the wall."""

    cpu_us: float
    per_second: float


def measure(way: Callable[..., Awaitable[None]], endpoint: Endpoint, *, jobs: int, concurrency: int) -> Measured:
    """One round: warm connections first, then `jobs` jobs with `concurrency` at once."""
    figures: list[Measured] = []

    async def rounds(job: Job) -> None:
        async def worker(count: int) -> None:
            for _ in range(count):
                await job()

        await asyncio.gather(*(worker(1) for _ in range(concurrency)))
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(worker(jobs // concurrency) for _ in range(concurrency)))
        done = jobs // concurrency * concurrency
        figures.append(
            Measured((time.process_time() - cpu) / done * 1e6, done / (time.perf_counter() - wall)),
        )

    async def whole() -> None:
        await way(endpoint, rounds)

    asyncio.run(whole())
    return figures[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.slow_server", str(LATENCY)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        endpoint = Endpoint(f"http://127.0.0.1:{server.stdout.readline().strip()}", "bench", key=KEY)
        try:
            report(endpoint, options)
        finally:
            server.terminate()


def report(endpoint: Endpoint, options: argparse.Namespace) -> None:
    jobs = {bare: options.requests, door: options.requests, trial: options.requests // REQUESTS_PER_TRIAL}
    figures: dict[str, list[Measured]] = {way.__name__: [] for way in jobs}
    for _ in range(options.rounds):
        for way, count in jobs.items():
            figures[way.__name__].append(measure(way, endpoint, jobs=count, concurrency=options.concurrency))
    cpu = {name: statistics.median(m.cpu_us for m in measured) for name, measured in figures.items()}
    speed = {name: statistics.median(m.per_second for m in measured) for name, measured in figures.items()}
    limit = options.concurrency / LATENCY
    print(f"concurrency {options.concurrency}, latency {LATENCY} s, medians of {options.rounds} rounds")
    for name, requests in (("bare", 1), ("door", 1), ("trial", REQUESTS_PER_TRIAL)):
        least, most = min(m.cpu_us for m in figures[name]), max(m.cpu_us for m in figures[name])
        share = speed[name] * requests / limit
        print(f"{name:6} {cpu[name]:7.0f} µs CPU each ({least:.0f} to {most:.0f}), {share:.0%} of the limit")
    print(f"door / bare {cpu['door'] / cpu['bare']:.2f}; trial / 3 bare {cpu['trial'] / cpu['bare'] / 3:.2f}")


if __name__ == "__main__":
    main()
