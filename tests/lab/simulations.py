"""The personas on a thread of this process, and runs of them worked to their end."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.lab.benches import launched, work
from toolbench.lab import builtin_data
from toolbench.lab.models import Model, Provider, Run
from toolbench.lab.worker.local_services import register
from toolbench.providers.simulated.server import SimulatedServer


@contextmanager
def simulation() -> Iterator[None]:
    """The catalogue is loaded and its personas can be asked, without latency."""
    builtin_data.load()
    server, loop = SimulatedServer(latency=0), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(20)
    register("simulated", {"url": server.url, "key": server.key, "model": "perfect"})
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


def persona(slug: str, wire: str = Provider.Wire.CHAT) -> Model:
    return Model.objects.select_related("provider").get(
        name__endswith=slug, provider__kind="simulated", provider__wire=wire
    )


def worked(*models: Model, **fields: Any) -> Run:
    """A run of these personas, ended."""
    run = launched(*models, profiles=(), **fields)
    for provider in {model.provider_id: model for model in models}.values():
        work(provider)
    run.refresh_from_db()
    return run
