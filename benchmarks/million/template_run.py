"""Plays the run whose trials the large database repeats: simulated models in ten scenarios.

`python -m benchmarks.million.template_run TRIALS_PER_CELL` prints the run's number. A worker must be running.
"""

import asyncio
import sys
import threading
import time
from random import Random

import benchmarks.django_setup  # noqa: F401
from benchmarks.simulated_trials import NEVER_ANSWERS
from benchmarks.stack import KEY_NAME, SECRET_KEY
from toolbench.evals.scenarios import list_scenarios
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE, build_simulated_models
from toolbench.lab.models import Model, Provider, Run, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SimulatedServer

STRATEGIES = ("raw", "production")
MODELS = 30
SCENARIOS = 10
SEED = 1
POLL_SECONDS = 0.5


def main() -> None:
    server = _start_server()
    run = launch(_build_request(_connect(server.url), trials=int(sys.argv[1])))
    open_trials = Trial.objects.filter(run=run).exclude(state=Trial.State.DONE)
    while open_trials.exists():
        time.sleep(POLL_SECONDS)
    while Run.objects.filter(pk=run.pk).exclude(state__in=Run.ENDED).exists():
        time.sleep(POLL_SECONDS)
    print(run.pk)


def _start_server() -> SimulatedServer:
    server, started = SimulatedServer(key=SECRET_KEY, latency_factor=0), threading.Event()

    async def serve() -> None:
        await server.start()
        started.set()
        await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
    started.wait()
    return server


def _connect(url: str) -> Provider:
    return Provider.objects.create(
        name="Simulated template",
        kind=Provider.Kind.SIMULATED,
        template=SIMULATED_TEMPLATE,
        base_url=url,
        concurrency=60,
        key_source=Provider.KeySource.ENVIRONMENT,
        key_env=KEY_NAME,
    )


def _build_request(provider: Provider, *, trials: int) -> RunRequest:
    """Return the request of the run, without models that never answer: their trials wait for a timeout."""
    silent = {persona.slug for persona in load_personas().values() if persona.drift == NEVER_ANSWERS}
    answering = [
        model for model in build_simulated_models(provider).values() if model.canonical.partition("/")[2] not in silent
    ]
    models = Model.objects.bulk_create(Random(SEED).sample(answering, MODELS))
    return RunRequest(
        title="Template",
        models=tuple(model.pk for model in models),
        strategies=STRATEGIES,
        scenarios=tuple(scenario.slug for scenario in list_scenarios()[:SCENARIOS]),
        trials=trials,
        instance_kind="drawn",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
