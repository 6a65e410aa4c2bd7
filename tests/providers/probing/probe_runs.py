"""Probes for tests: of the personas or of a scripted provider, over HTTP and without back-off."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable

from toolbench.engine.capabilities.record import Capabilities
from toolbench.engine.events import ExchangeError
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.http.client import HttpClient
from toolbench.providers.probing.check_result import ProbeCheck, merge_capabilities
from toolbench.providers.probing.prober import Prober
from toolbench.providers.probing.probes import probe_first_use
from toolbench.providers.simulated.server import SimulatedServer

RunProbe = Callable[[Prober], AsyncIterator[ProbeCheck]]
RANDOM_WORD = "kestrel-4821"


class ProbeFindings:
    """Checks of a probe with its exchanges."""

    def __init__(self, checks: list[ProbeCheck], exchanges: list[ExchangeStep]) -> None:
        self.checks = {check.slug: check for check in checks}
        self.exchanges = exchanges

    @property
    def capabilities(self) -> Capabilities:
        return merge_capabilities(self.checks.values())

    @property
    def errors(self) -> list[ExchangeError]:
        return [step.error for step in self.exchanges if step.error]


class _NoWaitProber(Prober):
    async def back_off(self, seconds: float) -> None: ...


def run_probe(endpoint: Endpoint, probe: RunProbe = probe_first_use) -> ProbeFindings:
    async def run() -> ProbeFindings:
        async with HttpClient() as client:
            return await _run_probe(endpoint, client, probe)

    return asyncio.run(run())


def probe_personas(
    names: Iterable[str], probe: RunProbe = probe_first_use, *, wire: str = "chat"
) -> dict[str, ProbeFindings]:
    """Probe each persona once, on one server."""

    async def run() -> dict[str, ProbeFindings]:
        server = SimulatedServer(latency_factor=0)
        await server.start()
        limits = Timeouts(connect=5, read=1, deadline=20)
        try:
            async with HttpClient() as client:
                endpoints = {
                    name: Endpoint(server.url, name, key=server.key, timeouts=limits, wire=wire) for name in names
                }
                return {name: await _run_probe(endpoint, client, probe) for name, endpoint in endpoints.items()}
        finally:
            await server.stop()

    return asyncio.run(run())


async def _run_probe(endpoint: Endpoint, client: HttpClient, probe: RunProbe) -> ProbeFindings:
    async def permit() -> None: ...

    prober = _NoWaitProber(endpoint, client, lambda check, step: None, permit, time.monotonic, RANDOM_WORD)
    return ProbeFindings([check async for check in probe(prober)], prober.exchanges)
