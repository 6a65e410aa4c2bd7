"""Commands of `benchmarks.canaries` with the product's settings: create rows, launch runs, wait.

`python -m benchmarks.canary_commands VERB …` writes its result as JSON to the file that CANARY_RESULT names.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmarks.django_setup  # noqa: F401
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.endpoints.probe_job import queue_probe
from toolbench.lab.models import Model, Probe, Provider, Run, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

KEY_NAME = "TOOLBENCH_CANARY_KEY"
RESULT_VARIABLE = "CANARY_RESULT"
POLL_SECONDS = 0.5
SCENARIOS = ("happy_path", "chat_only")


def prepare(base_url: str, canaries: str, trials: str) -> dict[str, Any]:
    """Connect a provider for each place of a key and each wire format; launch a run and a probe of each.

    A run tries every method with and without streaming. All arguments are texts, `canaries` a JSON object by place.
    """
    canary_by_place = json.loads(canaries)
    runs = [_launch_run(model, int(trials)) for model in _create_models(base_url, canary_by_place)]
    probes = [
        queue_probe(model, Probe.Kind.CONFORMANCE, why="canaries").pk for model in Model.objects.filter(note="canary")
    ]
    return {"runs": runs, "probes": probes, "providers": [*Provider.objects.values_list("pk", flat=True)]}


def _create_models(base_url: str, canary_by_place: dict[str, str]) -> list[Model]:
    """Create models with the key in the environment, stored, in an extra header and in the address."""
    places: dict[str, dict[str, Any]] = {
        "environment": {"key_source": "environment", "key_env": KEY_NAME},
        "pasted": {"key_source": "stored", "key_encrypted": encrypt(canary_by_place["pasted"])},
        "header": {
            "header_names": ["x-tenant"],
            "headers_encrypted": encrypt(json.dumps({"x-tenant": canary_by_place["header"]})),
        },
        "address": {"base_url": f"{base_url}/{canary_by_place['address']}"},
    }
    models = []
    for wire in ("chat", "anthropic"):
        for place, fields in places.items():
            columns = {"base_url": base_url, "wire": wire, "max_attempts": 2, "kind": "openai"} | fields
            provider = Provider.objects.create(name=f"canary {place} {wire}", **columns)
            models.append(Model.objects.create(provider=provider, name="canary", canonical="canary", note="canary"))
    return models


def _launch_run(model: Model, trials: int) -> int:
    methods = (
        ("native", "text_json", "template", "constrained") if model.provider.wire == "chat" else ("native", "text_json")
    )
    request = RunRequest(
        title=f"Canaries at {model.provider.name}",
        models=(model.pk,),
        methods=methods,
        streams=(False, True),
        scenarios=SCENARIOS,
        trials=trials,
        seed=1,
        deadline_seconds=60,
        enforce_applicability=False,
    )
    return int(launch(request, confirmed_requests=sys.maxsize).pk)


def wait_until_done(seconds: str) -> dict[str, Any]:
    """Wait until every trial and probe is done; return the number of unfinished ones and how trials ended."""
    deadline = time.monotonic() + float(seconds)
    while (unfinished := _count_unfinished()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    ends = [*Trial.objects.values_list("end", "failure_class").distinct()]
    return {"open": unfinished, "trials": Trial.objects.count(), "ends": ends}


def _count_unfinished() -> int:
    probes = Probe.objects.exclude(state=Probe.State.DONE).count()
    return Trial.objects.exclude(state=Trial.State.DONE).count() + probes


def plant_canary(canary: str) -> dict[str, Any]:
    """Write a canary to a row of a trial, without masking."""
    run = Run.objects.order_by("pk")[0]
    trial = Trial.objects.filter(run=run).order_by("pk")[0]
    Trial.objects.filter(pk=trial.pk).update(sentence=f"Planted {canary}.")
    return {"trial": trial.pk}


def main() -> None:
    verb, *arguments = sys.argv[1:]
    verbs: dict[str, Callable[..., dict[str, Any]]] = {
        "prepare": prepare,
        "wait": wait_until_done,
        "plant": plant_canary,
    }
    result = verbs[verb](*arguments)
    Path(os.environ[RESULT_VARIABLE]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
