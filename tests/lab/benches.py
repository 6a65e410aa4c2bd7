"""Runs of the lab for tests: a scripted provider as a row, launches on it, shifts in this process."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.lab.maintenance import look, sweep
from toolbench.lab.models import Cell, Model, Provider, Run, Step
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.worker.session import Terms, serve
from toolbench.providers.scripted_server import Answer, Ending, ScriptedProvider, Seen, calls, says

HELD_SECONDS = 180  # at most; what is held for longer was forgotten
PATCH = {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}


def plays_well(seen: Seen) -> Answer:
    """Three requests to success in the scenarios of the state group; "Done." at once where no tools are offered."""
    body = seen.json()
    answered = sum(message["role"] == "tool" for message in body["messages"])
    if not body.get("tools") or answered >= 2:
        return says("Done.")
    return calls(("state_patch", PATCH)) if answered else calls(("state_get", {}))


def slowly(seconds: float, player: Callable[[Seen], Answer] = plays_well) -> Callable[[Seen], Answer]:
    """The same answers, each after `seconds`."""

    def play(seen: Seen) -> Answer:
        answer = player(seen)
        return Answer(answer.status, answer.headers, answer.body, delay=seconds)

    return play


def answers_when(released: threading.Event, seen: Seen) -> Answer:
    """The head at once, the body when it is released."""
    body = plays_well(seen).body
    assert isinstance(body, bytes)

    def later() -> Iterator[bytes]:
        released.wait(HELD_SECONDS)
        yield body

    return Answer(headers={"content-type": "application/json"}, body=later(), ending=Ending.CLOSE)


class Halfway:
    """The same answers; every one after the first `quick` is held until `released`."""

    def __init__(self, quick: int) -> None:
        self.released = threading.Event()
        self._quick = quick

    def __call__(self, seen: Seen) -> Answer:
        self._quick -= 1
        return plays_well(seen) if self._quick >= 0 else answers_when(self.released, seen)


def scripted_model(scripted: ScriptedProvider, name: str = "scripted", **fields: Any) -> Model:
    """A model at a provider of that name, which leads to the scripted one."""
    defaults = {"base_url": scripted.base_url, "max_attempts": 1, "concurrency": 8}
    provider = Provider.objects.create(name=name, **(defaults | fields))
    return Model.objects.create(provider=provider, name=name, canonical=name)


def request_for(*models: Model, **fields: Any) -> RunRequest:
    defaults: dict[str, Any] = {
        "models": tuple(model.pk for model in models),
        "scenarios": ("happy_path",),
        "trials": 3,
        "seed": 7,
    }
    return RunRequest(**(defaults | fields))


def launched(*models: Model, **fields: Any) -> Run:
    return launch(request_for(*models, **fields), agreed=sys.maxsize)


def terms(seconds: float, **others: Any) -> Terms:
    """Terms of a shift with the maintenance that workers have."""
    return Terms(seconds, check_runs=look, sweep=sweep, **others)


def work(model: Model, *, seconds: float = 30.0) -> int:
    """One shift for the model's provider; returns how many trials it ended."""
    return serve(model.provider_id, terms(seconds))


def counts(cell: Cell) -> dict[str, Any]:
    """The derived columns of a cell."""
    named = ("id", "run", "config", "stale", "scenario", "scenario_version", "scenario_group", "control", "position")
    names = [f.name for f in Cell._meta.concrete_fields if f.name not in (*named, "instance_kind")]
    return {name: getattr(cell, name) for name in names}


def facts(step: Step) -> Any:
    return json.loads(bytes(step.body.facts))
