"""Simulated models served by a thread of this process, and finished runs of them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.lab.scripted_runs import launch_run, run_worker_session
from toolbench.lab import builtin_data
from toolbench.lab.models import Model, Provider, Run
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.providers.simulated.server import SimulatedServer


@contextmanager
def serve_simulated_models(server: SimulatedServer | None = None) -> Iterator[None]:
    """Load the built-in data and serve its simulated models without latency."""
    builtin_data.load_builtin_data()
    server, loop = server or SimulatedServer(latency_factor=0), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(20)
    register_local_server("simulated", {"url": server.url, "key": server.key, "model": "perfect"})
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


def get_simulated_model(slug: str, wire: str = Provider.Wire.CHAT) -> Model:
    return Model.objects.select_related("provider").get(
        name__endswith=slug, provider__kind="simulated", provider__wire=wire
    )


def run_to_end(*models: Model, **fields: Any) -> Run:
    """Launch a run of these simulated models and run it to its end."""
    run = launch_run(*models, profiles=(), **fields)
    for provider in {model.provider_id: model for model in models}.values():
        run_worker_session(provider)
    run.refresh_from_db()
    return run
