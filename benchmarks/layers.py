"""One trial's traffic in this process, with more of Toolbench from way to way; nothing is stored."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from benchmarks.benchmark_trial import build_trial, list_request_bodies
from toolbench.engine.events import EndReason
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient

CHAT_PATH = "chat/completions"

RunTrial = Callable[[], Awaitable[None]]
RunTrials = Callable[[RunTrial], Awaitable[None]]
MeasureLayer = Callable[[Endpoint, RunTrials], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """CPU of the working process per trial, and of PostgreSQL, in milliseconds; trials per second of the clock on the
    wall."""

    cpu_ms: float
    per_second: float
    postgres_ms: float = 0.0


async def measure_bare_client(endpoint: Endpoint, run: RunTrials) -> None:
    """aiohttp alone, sending the bytes of one trial."""
    url, bodies = endpoint.build_url(CHAT_PATH), list_request_bodies(build_trial())
    headers = {"authorization": f"Bearer {endpoint.key}", "content-type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def trial() -> None:
            for body in bodies:
                async with session.post(url, data=body, headers=headers, timeout=timeout) as answer:
                    await answer.read()

        await run(trial)


async def measure_http_client(endpoint: Endpoint, run: RunTrials) -> None:
    """The same through our door: classified, masked, every byte at hand."""
    bodies = list_request_bodies(build_trial())
    async with HttpClient() as opened:

        async def trial() -> None:
            for body in bodies:
                exchange = opened.build_exchange(endpoint, CHAT_PATH, body)
                await opened.send(exchange)
                assert exchange.find_error() is None

        await run(trial)


async def measure_loop(endpoint: Endpoint, run: RunTrials) -> None:
    """The loop with its tools and the judge, every step recorded in memory."""
    played = build_trial()
    async with HttpClient() as opened:

        async def trial() -> None:
            workspace, kept = played.scenario.open(played.instance), StepKeeper()
            world = RunContext(endpoint, opened, workspace.call, kept, kept, time.perf_counter, CancellationToken())
            ended = await drive(played.plan, world)
            assert ended.end is EndReason.FINAL
            assert played.scenario.judge(played.instance, ended, workspace).task_pass
            assert len(kept.steps) == 5

        await run(trial)


class StepKeeper:
    """Keeps the steps of one trial in memory and lets everything through."""

    def __init__(self) -> None:
        self.steps: list[ExchangeStep | ToolStep] = []

    def record(self, step: ExchangeStep | ToolStep) -> None:
        self.steps.append(step)

    async def reserve(self) -> None:
        return None

    async def back_off(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def measure_layer(way: MeasureLayer, endpoint: Endpoint, *, trials: int, concurrency: int) -> LayerFigures:
    """One round: one trial each to open the connections, then `trials` with `concurrency` at once."""
    figures: list[LayerFigures] = []

    async def run(trial: RunTrial) -> None:
        async def several(count: int) -> None:
            for _ in range(count):
                await trial()

        await asyncio.gather(*(several(1) for _ in range(concurrency)))
        each = max(1, trials // concurrency)
        done = each * concurrency
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(several(each) for _ in range(concurrency)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        figures.append(LayerFigures(cpu / done * 1000, done / wall))

    async def whole() -> None:
        await way(endpoint, run)

    asyncio.run(whole())
    return figures[0]
