"""Kinds of work during which a process crashes: rows, the work, and actions of people afterwards."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connections
from django.utils import timezone

from benchmarks.chaos.invariants import delete_recorded_ends
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.gateway.trace_writer import TraceWriter
from toolbench.lab.endpoints.probe_job import queue_probe, run_probe
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.models import GatewayTrace, Model, Probe, Provider, Run, Schedule
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs import control, limits
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
class ScheduleContext:
    """Context of one schedule: the provider of its rows, and what the scripted provider answers.

    Attributes:
        name: name of the provider.
        base_url: address of the provider.
        intervene: called with the number of each request; returns a reply in place of the correct answer, or None.
        notes: values that a kind keeps from its preparation for its work.
    """

    name: str
    base_url: str
    intervene: Callable[[int], ScriptedReply | None] = lambda count: None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def provider(self) -> Provider:
        """Provider of the schedule, read anew."""
        return Provider.objects.get(name=self.name)

    def create_model(self, **fields: Any) -> Model:
        """Create the provider, with these columns, and a model."""
        defaults = {"base_url": self.base_url, "concurrency": 2, "max_attempts": 2}
        provider = Provider.objects.create(name=self.name, **(defaults | fields))
        return Model.objects.create(provider=provider, name=self.name, canonical=self.name)

    def build_request(self, model: Model, **fields: Any) -> RunRequest:
        """Return a request for three trials of the model, with other fields if given."""
        defaults: dict[str, Any] = {"models": (model.pk,), "scenarios": (SCENARIO,), "trials": 3}
        return RunRequest(**(defaults | fields))

    def launch(self, model: Model, **fields: Any) -> Run:
        """Launch a run of the model."""
        return launch(self.build_request(model, seed=7, **fields), confirmed_requests=sys.maxsize)

    def work(self) -> None:
        """Run a worker session for the provider, as a Celery task does."""
        SessionRegistry(check_runs=check_runs, sweep=sweep).run_session(self.provider.pk)


def _do_nothing(context: ScheduleContext) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of work.

    Attributes:
        prepare: creates the rows before a process runs.
        work: the work of the process that crashes.
        act: actions of people and of the scheduler, repeated until the work is over; does nothing if they are done.
        ends_twice: whether trials end again after an error, in a new execution.
        stored_traces: number of gateway traces that must be stored unless the process was killed.
    """

    prepare: Callable[[ScheduleContext], object]
    work: Callable[[ScheduleContext], object] = ScheduleContext.work
    act: Callable[[ScheduleContext], object] = _do_nothing
    ends_twice: bool = False
    stored_traces: int = 0


def _prepare_fixed(context: ScheduleContext) -> None:
    context.launch(context.create_model())


def _prepare_claimed_ahead(context: ScheduleContext) -> None:
    """Launch enough short trials for slots to be handed over."""
    context.launch(context.create_model(), scenarios=("chat_only",), trials=9)


def _prepare_until_decided(context: ScheduleContext) -> None:
    """Launch a run with sequential stopping: ten trials of one request each, then five more at a time."""
    until = StoppingRule(target=80).to_json()
    context.launch(context.create_model(concurrency=5), scenarios=("chat_only",), trials=20, until=until)


def _prepare_capped(context: ScheduleContext) -> None:
    context.launch(context.create_model(), request_cap=CAP_REQUESTS)


def _prepare_token_capped(context: ScheduleContext) -> None:
    context.launch(context.create_model(), token_cap=CAP_TOKENS)


def _prepare_cancelled(context: ScheduleContext) -> None:
    """Let a person cancel the run when the provider receives its second request."""
    run = context.launch(context.create_model())

    def cancel(count: int) -> None:
        if count == CANCEL_AT_REQUEST:
            control.cancel_run(run.pk)
            connections.close_all()

    context.intervene = cancel


def _cancel(context: ScheduleContext) -> None:
    """Cancel the run if it is still running."""
    for run in Run.objects.filter(state=Run.State.RUNNING):
        control.cancel_run(run.pk)


def _prepare_resumed(context: ScheduleContext) -> None:
    run = context.launch(context.create_model())
    control.cancel_run(run.pk)
    delete_recorded_ends()


def _resume_cancelled(context: ScheduleContext) -> None:
    for run in Run.objects.filter(state=Run.State.CANCELLED):
        control.resume_cancelled_run(run.pk)


def _raise_cap(context: ScheduleContext) -> None:
    """Raise the cap of a paused run and resume it."""
    for run in Run.objects.filter(state=Run.State.PAUSED):
        limits.set_limits_and_resume(run.pk, request_cap=100, token_cap=None)


def _prepare_retried(context: ScheduleContext) -> None:
    """Let the provider refuse the first requests, so that the first trials end with an error."""
    context.launch(context.create_model(max_attempts=1))
    context.intervene = lambda count: error_reply(500, "scripted") if count <= FAILING_REQUESTS else None


def _retry_errors(context: ScheduleContext) -> None:
    for run in Run.objects.filter(state=Run.State.FINISHED, trials__outcome="infra").distinct():
        control.retry_errored_trials(run.pk)


def _prepare_probe(context: ScheduleContext) -> None:
    context.notes["probe"] = queue_probe(context.create_model(), Probe.Kind.FIRST_USE).pk


def _run_probe(context: ScheduleContext) -> None:
    run_probe(context.notes["probe"], on_finished=decide_waiting_methods)


def _prepare_schedule(context: ScheduleContext) -> None:
    request = context.build_request(context.create_model(), trials=2)
    Schedule.objects.create(
        name=context.name,
        request=request.to_json(),
        every_hours=24,
        requests_per_run=100,
        requests_per_month=1000,
        next_due_at=timezone.now() - timedelta(seconds=1),
    )


def _launch_and_work(context: ScheduleContext) -> None:
    launch_due_schedules()
    context.work()


def _launch_schedules(context: ScheduleContext) -> None:
    launch_due_schedules()


def _answer_through_gateway(context: ScheduleContext) -> None:
    """Store the traces of two batches of requests, as the process of the gateway does."""
    asyncio.run(_write_traces(context))


async def _write_traces(context: ScheduleContext) -> None:
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


def _act_then_work(act: Callable[[ScheduleContext], object]) -> Callable[[ScheduleContext], None]:
    def work(context: ScheduleContext) -> None:
        act(context)
        context.work()

    return work


def _work_act_work(act: Callable[[ScheduleContext], object]) -> Callable[[ScheduleContext], None]:
    def work(context: ScheduleContext) -> None:
        context.work()
        act(context)
        context.work()

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
