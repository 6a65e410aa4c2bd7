"""Layers that run a trial in this process without storing it: bare client, HTTP client, loop."""

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
STEPS_PER_TRIAL = 5

RunTrial = Callable[[], Awaitable[None]]
RunTrials = Callable[[RunTrial], Awaitable[None]]
RunLayer = Callable[[Endpoint, RunTrials], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """Figures of one layer.

    Attributes:
        cpu_ms: CPU of the process that runs the trials, per trial.
        per_second: trials per second.
        postgres_ms: CPU of PostgreSQL, per trial.
    """

    cpu_ms: float
    per_second: float
    postgres_ms: float = 0.0


async def run_bare_client(endpoint: Endpoint, run: RunTrials) -> None:
    """Send the requests of each trial with aiohttp alone."""
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


async def run_http_client(endpoint: Endpoint, run: RunTrials) -> None:
    """Send the requests with the HTTP client, which classifies and masks answers and keeps every byte."""
    bodies = list_request_bodies(build_trial())
    async with HttpClient() as client:

        async def trial() -> None:
            for body in bodies:
                exchange = client.build_exchange(endpoint, CHAT_PATH, body)
                await client.send(exchange)
                assert exchange.find_error() is None

        await run(trial)


async def run_loop(endpoint: Endpoint, run: RunTrials) -> None:
    """Run the loop with tools and judge; keep every step in memory."""
    benchmark = build_trial()
    async with HttpClient() as client:

        async def trial() -> None:
            workspace, recorder = benchmark.scenario.open(benchmark.instance), StepRecorder()
            context = RunContext(
                endpoint, client, workspace.call, recorder, recorder, time.perf_counter, CancellationToken()
            )
            result = await drive(benchmark.plan, context)
            assert result.end is EndReason.FINAL
            assert benchmark.scenario.judge(benchmark.instance, result, workspace).task_pass
            assert len(recorder.steps) == STEPS_PER_TRIAL

        await run(trial)


class StepRecorder:
    """Recorder and request gate of one trial: keeps the steps in memory and allows every request."""

    def __init__(self) -> None:
        self.steps: list[ExchangeStep | ToolStep] = []

    def record(self, step: ExchangeStep | ToolStep) -> None:
        """Keep a step."""
        self.steps.append(step)

    async def reserve(self) -> None:
        """Allow a request at once."""

    async def back_off(self, seconds: float) -> None:
        """Wait before a retry."""
        await asyncio.sleep(seconds)


def measure_layer(run_layer: RunLayer, endpoint: Endpoint, *, trials: int, concurrency: int) -> LayerFigures:
    """Measure one round of a layer, after a trial in each slot that opens the connections."""
    figures: list[LayerFigures] = []

    async def run(trial: RunTrial) -> None:
        async def run_trials(count: int) -> None:
            for _ in range(count):
                await trial()

        await asyncio.gather(*(run_trials(1) for _ in range(concurrency)))
        per_slot = max(1, trials // concurrency)
        done = per_slot * concurrency
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(run_trials(per_slot) for _ in range(concurrency)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        figures.append(LayerFigures(cpu / done * 1000, done / wall))

    async def measure() -> None:
        await run_layer(endpoint, run)

    asyncio.run(measure())
    return figures[0]
