"""A failing background job ends neither its session nor another job.

Each job and each database function fails in turn.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from django.conf import settings

from tests.lab.scripted_runs import build_session_options, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import JobFailure, Run
from toolbench.lab.worker import background_jobs, session
from toolbench.lab.worker.background_jobs import JobFunction
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.session import CLAIMING_JOB, ENDING_JOB, WorkerSession
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = tuple(WorkerSession(0, build_session_options(0)).list_background_jobs())
DATABASE_FUNCTIONS = {
    "fetch": CLAIMING_JOB,
    "has_queued_trials": CLAIMING_JOB,
    "write_batch": "storing steps and outcomes",
    "reserve": "reserving requests",
    "record_heartbeat": "heartbeat",
    "renew_leases": "renewing leases",
    "_check_runs_once": "checking runs",
    "sweep": ENDING_JOB,
    "update": "sharing slots",
    "give_up": ENDING_JOB,
    "_end_claiming": ENDING_JOB,
}  # functions that a session runs in its database thread, with the job that runs each
INJECTED_FAILURES = 2  # in a row


def _end_claiming() -> None:
    """Do nothing when the session claims no more."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "MIN_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(session, "CHECK_RUNS_SECONDS", 0.01)
    monkeypatch.setattr(settings, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(settings, "SWEEP_SECONDS", 60)  # only the sweep at the end of a session


def assert_all_passed(run: Run, trials: int) -> None:
    run.refresh_from_db()
    assert list(run.trials.values_list("outcome", flat=True)) == ["pass"] * trials
    assert run.state == Run.State.FINISHED


@pytest.mark.parametrize("name", JOBS)
def test_session_restarts_failed_background_job(
    name: str, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, starts = WorkerSession.list_background_jobs, count(1)

    def list_failing_jobs(session: WorkerSession) -> Mapping[str, JobFunction]:
        working_jobs = jobs(session)

        async def job() -> None:
            if next(starts) <= INJECTED_FAILURES:
                raise RuntimeError("injected")
            await working_jobs[name]()

        return {**working_jobs, name: job}

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=2)
    monkeypatch.setattr(WorkerSession, "list_background_jobs", list_failing_jobs)
    assert run_worker_session(model) == 2
    assert_all_passed(run, 2)
    failure = JobFailure.objects.get()
    assert (failure.job, failure.error, failure.count, failure.provider_name) == (
        name,
        "RuntimeError",
        INJECTED_FAILURES,
        "scripted",
    )


def observe_database_calls(monkeypatch: pytest.MonkeyPatch, observe: Callable[[str], None]) -> None:
    """Call `observe`, which may raise, with the name of every function that runs in a database thread."""
    run = DatabaseThread.run

    async def run_observed(thread: DatabaseThread, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        def call_observed() -> Any:
            observe(function.__name__)
            return function(*args, **named)

        return await run(thread, call_observed)

    monkeypatch.setattr(DatabaseThread, "run", run_observed)


def run_session_once(model: Any) -> int:
    return asyncio.run(
        WorkerSession(model.provider_id, build_session_options(30, on_claiming_ended=_end_claiming)).run()
    )


@pytest.mark.parametrize("name", DATABASE_FUNCTIONS)
def test_session_survives_failures_of_database_function(
    name: str, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count(1)

    def fail(function: str) -> None:
        if function == name and next(calls) <= INJECTED_FAILURES:
            raise RuntimeError("injected")

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1, request_cap=7)  # near a cap each request is reserved
    other_model = make_scripted_model(scripted, "other")
    other_run = launch_run(other_model, trials=1, scenarios=("chat_only",))
    observe_database_calls(monkeypatch, fail)
    run_session_once(model)
    assert next(calls) > 1
    run_worker_session(other_model)
    assert_all_passed(other_run, 1)
    if name == "reserve":
        assert (
            run.trials.get().failure_class == "our_error"
        )  # the trial that waits for the reservation gets the exception
    else:
        assert_all_passed(run, 1)
    assert {failure.job for failure in JobFailure.objects.all()} == {DATABASE_FUNCTIONS[name]}


def test_session_calls_only_listed_database_functions(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    model = make_scripted_model(scripted)
    launch_run(model, trials=2, request_cap=7)
    observe_database_calls(monkeypatch, seen.add)
    run_session_once(model)
    assert seen - {"close_all", "<lambda>"} <= DATABASE_FUNCTIONS.keys()
    assert {"fetch", "write_batch", "reserve", "_check_runs_once", "sweep", "update", "_end_claiming"} <= seen
