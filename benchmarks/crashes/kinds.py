"""Kinds of work that a process does when it crashes: what is prepared, what it does, and what people do afterwards."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connections
from django.utils import timezone

from benchmarks.chaos.invariants import forget_ends
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.gateway.trace_writer import TraceWriter
from toolbench.lab.endpoints.probe_job import queue_probe, run_probe
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.models import GatewayTrace, Model, Probe, Provider, Run, Schedule
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs import control
from toolbench.lab.runs.launch import launch
from toolbench.lab.schedules.launching import launch_due_schedules
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.session_registry import SessionRegistry
from toolbench.providers.scripted_server import ScriptedReply, error_reply

SCENARIO = "happy_path"  # three requests and two tool executions
CAP_REQUESTS = 7
CAP_TOKENS = 75  # five answers of 15
CANCEL_AT_REQUEST = 2
FAILING_REQUESTS = 2
TRACE_BATCHES, TRACES_PER_BATCH = 2, 3


@dataclass(slots=True)
class Scene:
    """Rows of one schedule.

    Attributes:
        name: name of its provider, and its part of the scripted provider's address.
        intervene: called with the number of each request; returns a reply in place of the right answer.
        notes: what a kind keeps from its preparation for later.
    """

    name: str
    base_url: str
    intervene: Callable[[int], ScriptedReply | None] = lambda count: None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def provider(self) -> Provider:
        return Provider.objects.get(name=self.name)

    def make_model(self, **fields: Any) -> Model:
        defaults = {"base_url": self.base_url, "concurrency": 2, "max_attempts": 2}
        provider = Provider.objects.create(name=self.name, **(defaults | fields))
        return Model.objects.create(provider=provider, name=self.name, canonical=self.name)

    def build_request(self, model: Model, **fields: Any) -> RunRequest:
        defaults: dict[str, Any] = {"models": (model.pk,), "scenarios": (SCENARIO,), "trials": 3}
        return RunRequest(**(defaults | fields))

    def launch(self, model: Model, **fields: Any) -> Run:
        return launch(self.build_request(model, seed=7, **fields), confirmed_requests=sys.maxsize)

    def work(self) -> None:
        """Run a worker session of the provider, as a Celery task does."""
        SessionRegistry(check_runs=check_runs, sweep=sweep).run_session(self.provider.pk)


def _do_nothing(scene: Scene) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Kind:
    """Work of one kind.

    Attributes:
        prepare: creates the rows, undisturbed.
        work: what the process does that crashes.
        act: what people and the scheduler do until the work is over; repeated, and does nothing once it is done.
        stored_traces: number of the gateway's traces that are stored unless the process was killed.
        ends_twice: whether trials end again after an error, in a new execution.
    """

    prepare: Callable[[Scene], object]
    work: Callable[[Scene], object] = Scene.work
    act: Callable[[Scene], object] = _do_nothing
    ends_twice: bool = False
    stored_traces: int = 0


def _prepare_fixed(scene: Scene) -> None:
    scene.launch(scene.make_model())


def _prepare_claimed_ahead(scene: Scene) -> None:
    """So many short trials that slots are handed over."""
    scene.launch(scene.make_model(), scenarios=("chat_only",), trials=9)


def _prepare_until_decided(scene: Scene) -> None:
    """Ten trials of one request each, then five more at a time."""
    until = StoppingRule(target=80).to_json()
    scene.launch(scene.make_model(concurrency=5), scenarios=("chat_only",), trials=20, until=until)


def _prepare_capped(scene: Scene) -> None:
    scene.launch(scene.make_model(), request_cap=CAP_REQUESTS)


def _prepare_token_capped(scene: Scene) -> None:
    scene.launch(scene.make_model(), token_cap=CAP_TOKENS)


def _prepare_cancelled(scene: Scene) -> None:
    """A person cancels the run when the provider gets its second request."""
    run = scene.launch(scene.make_model())

    def cancel(count: int) -> None:
        if count == CANCEL_AT_REQUEST:
            control.cancel_run(run.pk)
            connections.close_all()

    scene.intervene = cancel


def _cancel(scene: Scene) -> None:
    """Cancel the run if no request has done it."""
    for run in Run.objects.filter(state=Run.State.RUNNING):
        control.cancel_run(run.pk)


def _prepare_resumed(scene: Scene) -> None:
    run = scene.launch(scene.make_model())
    control.cancel_run(run.pk)
    forget_ends()


def _resume_cancelled(scene: Scene) -> None:
    for run in Run.objects.filter(state=Run.State.CANCELLED):
        control.resume_cancelled_run(run.pk)


def _raise_cap(scene: Scene) -> None:
    """Raise the cap of a paused run and resume it."""
    for run in Run.objects.filter(state=Run.State.PAUSED):
        control.set_limits_and_resume(run.pk, request_cap=100, token_cap=None)


def _prepare_retried(scene: Scene) -> None:
    """The provider refuses the first requests, so the first trials end with an error."""
    scene.launch(scene.make_model(max_attempts=1))
    scene.intervene = lambda count: error_reply(500, "scripted") if count <= FAILING_REQUESTS else None


def _retry_errors(scene: Scene) -> None:
    for run in Run.objects.filter(state=Run.State.FINISHED, trials__outcome="infra").distinct():
        control.retry_errored_trials(run.pk)


def _prepare_probe(scene: Scene) -> None:
    scene.notes["probe"] = queue_probe(scene.make_model(), Probe.Kind.FIRST_USE).pk


def _run_probe(scene: Scene) -> None:
    run_probe(scene.notes["probe"], on_finished=decide_waiting_methods)


def _prepare_schedule(scene: Scene) -> None:
    request = scene.build_request(scene.make_model(), trials=2)
    Schedule.objects.create(
        name=scene.name,
        request=request.to_json(),
        every_hours=24,
        requests_per_run=100,
        requests_per_month=1000,
        next_due_at=timezone.now() - timedelta(seconds=1),
    )


def _launch_and_work(scene: Scene) -> None:
    launch_due_schedules()
    scene.work()


def _launch_schedules(scene: Scene) -> None:
    launch_due_schedules()


def _answer_through_gateway(scene: Scene) -> None:
    """Store the traces of two batches of requests, as the gateway's process does."""
    asyncio.run(_write_traces(scene))


async def _write_traces(scene: Scene) -> None:
    database = DatabaseThread()
    writer = TraceWriter(database.run)
    writer.start()
    try:
        for batch in range(TRACE_BATCHES):
            for number in range(TRACES_PER_BATCH):
                alias = f"trace {batch * TRACES_PER_BATCH + number}"
                writer.put(GatewayTrace(alias=alias, dialect="chat", at=timezone.now(), status=200, duration_ms=1.0))
            await asyncio.sleep(1)
        await writer.stop()
    finally:
        await database.close()


def _act_then_work(act: Callable[[Scene], object]) -> Callable[[Scene], None]:
    def work(scene: Scene) -> None:
        act(scene)
        scene.work()

    return work


def _work_act_work(act: Callable[[Scene], object]) -> Callable[[Scene], None]:
    def work(scene: Scene) -> None:
        scene.work()
        act(scene)
        scene.work()

    return work


KINDS: Mapping[str, Kind] = {
    "fixed": Kind(_prepare_fixed),
    "claimed ahead": Kind(_prepare_claimed_ahead),
    "until decided": Kind(_prepare_until_decided),
    "capped": Kind(_prepare_capped),
    "token-capped": Kind(_prepare_token_capped),
    "cap raised": Kind(_prepare_capped, _work_act_work(_raise_cap), _raise_cap),
    "cancelled": Kind(_prepare_cancelled, act=_cancel),
    "resumed": Kind(_prepare_resumed, _act_then_work(_resume_cancelled), _resume_cancelled),
    "retried": Kind(_prepare_retried, _work_act_work(_retry_errors), _retry_errors, ends_twice=True),
    "probe": Kind(_prepare_probe, _run_probe),
    "gateway traces": Kind(_do_nothing, _answer_through_gateway, stored_traces=TRACE_BATCHES * TRACES_PER_BATCH),
    "schedule": Kind(_prepare_schedule, _launch_and_work, _launch_schedules),
}
