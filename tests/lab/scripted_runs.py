"""Runs for tests of the lab: rows of scripted providers, launches, worker sessions in this process."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.models import Cell, Model, Provider, Run, Step
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.worker.session import SessionOptions, run_session
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

MAX_HOLD_SECONDS = 180
PATCH_ARGUMENTS = {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}


def answer_correctly(seen: ReceivedRequest) -> ScriptedReply:
    """Solve the scenarios of the state group in three requests; answer "Done." if no tools are offered."""
    body = seen.json()
    answered = sum(message["role"] == "tool" for message in body["messages"])
    if not body.get("tools") or answered >= 2:
        return text_reply("Done.")
    return tool_call_reply(("state_patch", PATCH_ARGUMENTS)) if answered else tool_call_reply(("state_get", {}))


def delay_answers(
    seconds: float, player: Callable[[ReceivedRequest], ScriptedReply] = answer_correctly
) -> Callable[[ReceivedRequest], ScriptedReply]:
    """Return a player that gives the same answers, each after `seconds`."""

    def play(seen: ReceivedRequest) -> ScriptedReply:
        answer = player(seen)
        return ScriptedReply(answer.status, answer.headers, answer.body, delay=seconds)

    return play


def answer_on_release(released: threading.Event, seen: ReceivedRequest) -> ScriptedReply:
    """Send the head immediately and the body when `released` is set."""
    body = answer_correctly(seen).body
    assert isinstance(body, bytes)

    def later() -> Iterator[bytes]:
        released.wait(MAX_HOLD_SECONDS)
        yield body

    return ScriptedReply(headers={"content-type": "application/json"}, body=later(), ending=ConnectionEnd.CLOSE)


class HeldAnswers:
    """Correct answers, of which each after the first `quick` is held until `released` is set."""

    def __init__(self, quick: int) -> None:
        self.released = threading.Event()
        self._quick = quick
        self._last_request_at = time.monotonic()

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        self._last_request_at = time.monotonic()
        self._quick -= 1
        return answer_correctly(seen) if self._quick >= 0 else answer_on_release(self.released, seen)

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last request."""
        return time.monotonic() - self._last_request_at

    def release_more(self, quick: int) -> None:
        """Release the answers that are held now, and hold later ones after `quick` more."""
        released, self.released, self._quick = self.released, threading.Event(), quick
        released.set()


def make_scripted_model(scripted: ScriptedServer, name: str = "scripted", **fields: Any) -> Model:
    """Create a model at a provider of that name with the address of the scripted server."""
    defaults = {"base_url": scripted.base_url, "max_attempts": 1, "concurrency": 8}
    provider = Provider.objects.create(name=name, **(defaults | fields))
    return Model.objects.create(provider=provider, name=name, canonical=name)


def make_paid_model(scripted: ScriptedServer, name: str = "scripted", **fields: Any) -> Model:
    """Create a scripted model with a price; an address of this machine is free without one."""
    model = make_scripted_model(scripted, name, **fields)
    model.price = {"input": 1.0, "output": 1.0, "date": "2026-01-01", "source": "entered"}
    model.save()
    return model


def build_request(*models: Model, **fields: Any) -> RunRequest:
    defaults: dict[str, Any] = {
        "models": tuple(model.pk for model in models),
        "scenarios": ("happy_path",),
        "trials": 3,
        "seed": 7,
    }
    return RunRequest(**(defaults | fields))


def launch_run(*models: Model, **fields: Any) -> Run:
    return launch(build_request(*models, **fields), confirmed_requests=sys.maxsize)


def build_session_options(seconds: float, **others: Any) -> SessionOptions:
    """Return options of a worker session with the maintenance functions of a worker."""
    return SessionOptions(seconds, check_runs=check_runs, sweep=sweep, **others)


def run_worker_session(model: Model, *, seconds: float = 30.0) -> int:
    """Run one worker session for the provider of the model, and return the number of trials that ended."""
    return run_session(model.provider_id, build_session_options(seconds))


def read_counters(cell: Cell) -> dict[str, Any]:
    """Return the derived columns of a cell."""
    named = ("id", "run", "config", "stale", "scenario", "scenario_version", "scenario_group", "control", "position")
    names = [f.name for f in Cell._meta.concrete_fields if f.name not in (*named, "instance_kind")]
    return {name: getattr(cell, name) for name in names}


def read_step_facts(step: Step) -> Any:
    return json.loads(bytes(step.body.facts))
