"""A failing background job ends neither its session nor another job: each job and each verb is made to fail in turn."""

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
JOBS = tuple(WorkerSession(0, build_session_options(0)).jobs())
VERBS = {
    "fetch": CLAIMING_JOB,
    "has_queued_trials": CLAIMING_JOB,
    "write_batch": "storing steps and outcomes",
    "reserve": "reserving requests",
    "record_heartbeat": "heartbeat",
    "renew_leases": "renewing leases",
    "check_runs": "looking at runs",
    "sweep": ENDING_JOB,
    "_over": ENDING_JOB,
}  # what a session asks of the database, with the job that asks
TIMES = 2  # failures in a row


def _over() -> None:
    """Is told that the session claims no more."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "MIN_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(session, "CHECK_RUNS_SECONDS", 0.01)
    monkeypatch.setattr(settings, "HEARTBEAT_SECONDS", 0.02)


def assert_all_passed(run: Run, trials: int) -> None:
    run.refresh_from_db()
    assert list(run.trials.values_list("outcome", flat=True)) == ["pass"] * trials
    assert run.state == Run.State.FINISHED


@pytest.mark.parametrize("name", JOBS)
def test_session_job_that_fails_is_started_again(
    name: str, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, starts = WorkerSession.jobs, count(1)

    def failing_first(shift: WorkerSession) -> Mapping[str, JobFunction]:
        found = jobs(shift)

        async def job() -> None:
            if next(starts) <= TIMES:
                raise RuntimeError("injected")
            await found[name]()

        return {**found, name: job}

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=2)
    monkeypatch.setattr(WorkerSession, "jobs", failing_first)
    assert run_worker_session(model) == 2
    assert_all_passed(run, 2)
    failure = JobFailure.objects.get()
    assert (failure.job, failure.error, failure.count, failure.provider_name) == (
        name,
        "RuntimeError",
        TIMES,
        "scripted",
    )


def spied(monkeypatch: pytest.MonkeyPatch, hear: Callable[[str], None]) -> None:
    """`hear` is told the name of every verb that a session asks of the database, and may raise."""
    run = DatabaseThread.run

    async def hearing(thread: DatabaseThread, verb: Callable[..., Any], *args: Any, **named: Any) -> Any:
        def heard() -> Any:
            hear(verb.__name__)
            return verb(*args, **named)

        return await run(thread, heard)

    monkeypatch.setattr(DatabaseThread, "run", hearing)


def a_session(model: Any) -> int:
    return asyncio.run(WorkerSession(model.provider_id, build_session_options(30, on_claiming_ended=_over)).run())


@pytest.mark.parametrize("name", VERBS)
def test_session_survives_failures_of_a_database_verb(
    name: str, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count(1)

    def fail(verb: str) -> None:
        if verb == name and next(calls) <= TIMES:
            raise RuntimeError("injected")

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1, request_cap=7)  # near a cap each request is reserved
    other = make_scripted_model(scripted, "other")
    innocent = launch_run(other, trials=1, scenarios=("chat_only",))
    spied(monkeypatch, fail)
    a_session(model)
    assert next(calls) > 1
    run_worker_session(other)
    assert_all_passed(innocent, 1)
    if name == "reserve":
        assert run.trials.get().failure_class == "our_error"  # it asked, and the exception was its answer
    else:
        assert_all_passed(run, 1)
    assert {failure.job for failure in JobFailure.objects.all()} == {VERBS[name]}


def test_every_database_verb_of_a_session_is_in_the_list(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    model = make_scripted_model(scripted)
    launch_run(model, trials=2, request_cap=7)
    spied(monkeypatch, seen.add)
    a_session(model)
    assert seen - {"close_all", "<lambda>"} <= VERBS.keys()
    assert {"fetch", "write_batch", "reserve", "check_runs", "sweep", "_over"} <= seen
