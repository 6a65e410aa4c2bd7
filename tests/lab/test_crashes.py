"""Crashes of a durable PostgreSQL, and of one that loses the newest commits."""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.models import Count, F, Q, Sum
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from tests.database_cleanup import empty_tables
from tests.lab.database_crashes import CrashMoment, PlannedCrashes
from tests.lab.durable_postgres import DurablePostgres
from tests.lab.scripted_runs import HeldAnswers, launch_run, make_scripted_model, read_counters, run_worker_session
from tests.wait import wait_until
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.models import Model, Run, Step, Trial
from toolbench.lab.runs import limits
from toolbench.lab.worker import session as session_module
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

TRIALS = 4
STEPS = 5  # of a trial: three exchanges, two tools
PLENTY = 10_000
FUNCTIONS = ("fetch", "reserve", "write_batch")  # those of a session that count requests or store trials


@pytest.fixture(scope="module")
def durable(servers: None, django_db_blocker: DjangoDbBlocker) -> Iterator[DurablePostgres]:
    """Yield a migrated server that the connections of this process use during the tests of this file."""
    server = DurablePostgres(Path(tempfile.mkdtemp(prefix="tb-crash-", dir="/tmp")))
    database = connections.settings["default"]
    try:
        server.prepare()
        server.stop_wal_writer()
        with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
            connections.close_all()
            patch.setitem(database, "HOST", str(server.sockets))
            patch.setitem(database, "NAME", "toolbench")
            call_command("migrate", verbosity=0)
            yield server
            connections.close_all()
    finally:
        server.remove()


@pytest.fixture
def server(durable: DurablePostgres, settings: Settings) -> Iterator[DurablePostgres]:
    """Yield the durable server, emptied after the test, with leases that outlast a restart."""
    settings.LEASE_SECONDS = 15
    yield durable
    connections.close_all()
    durable.start()
    empty_tables()
    connections.close_all()


def set_commits(server: DurablePostgres, mode: str) -> None:
    """Set whether commits wait for the disk by default: "on" or "off"."""
    with psycopg.connect(server.build_url(), autocommit=True) as session:
        session.execute("SET synchronous_commit = on")
        session.execute(f"ALTER DATABASE toolbench SET synchronous_commit = {mode}".encode())
    connections.close_all()


@pytest.fixture
def lossy_server(server: DurablePostgres) -> Iterator[DurablePostgres]:
    """Yield the server with commits that are acknowledged before they are on disk."""
    set_commits(server, "off")
    yield server
    server.start()
    set_commits(server, "on")


def work_to_end(model: Model, crashes: PlannedCrashes, patch: pytest.MonkeyPatch) -> None:
    """Run worker sessions with the remaining crashes until every run is finished."""
    patch.setattr(session_module, "DatabaseThread", crashes.thread)

    def finished() -> bool:
        with suppress(*UNAVAILABLE_ERRORS):
            run_worker_session(model, seconds=10)
        connection.close()  # its server may be gone
        sweep()
        return not Run.objects.exclude(state=Run.State.FINISHED).exists()

    wait_until(finished)


def count_sent_requests(provider: ScriptedServer, model: Model) -> int:
    return sum(seen.json()["model"] == model.name for seen in provider.seen)


def assert_nothing_is_missing(run: Run) -> None:
    run.refresh_from_db()
    trials = Trial.objects.filter(run=run, state=Trial.State.DONE, outcome=Trial.Outcome.PASS)
    last = Q(steps__execution=F("execution"))
    stored = trials.annotate(all=Count("steps", last), exchanges=Count("steps", last & Q(steps__kind="exchange")))
    assert set(stored.values_list("all", "requests", "exchanges")) == {(STEPS, 3, 3)}
    assert stored.count() == TRIALS
    tokens = Step.objects.filter(trial__run=run).aggregate(a=Sum("input_tokens"), b=Sum("output_tokens"))
    assert run.tokens_used == tokens["a"] + tokens["b"]
    before = [read_counters(cell) for cell in run.cells.order_by("pk")]
    mark_stale(run.cells.values_list("pk", flat=True))
    recompute_stale()
    assert before == [read_counters(cell) for cell in run.cells.order_by("pk")]


def work_through_crashes(
    server: DurablePostgres, scripted: ScriptedServer, patch: pytest.MonkeyPatch, moment: CrashMoment
) -> None:
    """Run three runs to their end while the server crashes once around each function, and check them."""
    free = make_scripted_model(scripted, "free", concurrency=6)
    capped, counted = (Model.objects.create(provider=free.provider, name=name) for name in ("capped", "counted"))
    runs = {free: launch_run(free, trials=TRIALS)}
    server.flush()

    def launch_others() -> None:
        """Launch runs with limits after the first claim has crashed, since their claims wait for the disk."""
        if capped not in runs:
            runs[capped] = launch_run(capped, trials=TRIALS, request_cap=PLENTY)
            runs[counted] = launch_run(counted, trials=TRIALS, token_cap=PLENTY)  # asks before every request
            server.flush()

    crashes = PlannedCrashes(server, [(function, moment) for function in FUNCTIONS], restarted=launch_others)
    work_to_end(free, crashes, patch)
    assert not any(crashes.left.values())
    for model, run in runs.items():
        assert_nothing_is_missing(run)
        assert run.requests_reserved >= count_sent_requests(scripted, model)


@pytest.mark.parametrize("moment", CrashMoment)
def test_session_with_crash_at_commit_loses_no_step_or_request(
    server: DurablePostgres,
    scripted: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    moment: CrashMoment,
) -> None:
    if moment is CrashMoment.UNANSWERED:
        settings.LEASE_SECONDS = 1.5  # for trials whose claim the worker never received
    work_through_crashes(server, scripted, monkeypatch, moment)


def test_session_with_lost_commits_loses_no_step_or_request(
    lossy_server: DurablePostgres, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_through_crashes(lossy_server, scripted, monkeypatch, CrashMoment.ANSWERED)


def test_session_stores_steps_lost_in_crash_before_trial_ends(
    lossy_server: DurablePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway = HeldAnswers(TRIALS)

    def play(seen: ReceivedRequest) -> ScriptedReply:
        if len(scripted.seen) == 1:
            lossy_server.flush()  # every trial is claimed, no step is written
        return halfway(seen)

    with ScriptedServer(play) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, trials=TRIALS)
        lossy_server.flush()
        crashes = PlannedCrashes(lossy_server, [("write_batch", CrashMoment.ANSWERED)], restarted=halfway.released.set)
        work_to_end(model, crashes, monkeypatch)
    assert_nothing_is_missing(run)


def test_set_limits_after_crash_counts_requests_of_claimed_trials(
    server: DurablePostgres, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=TRIALS)
    server.flush()

    def set_cap() -> None:
        limits.set_limits(run.pk, request_cap=PLENTY, token_cap=None)

    crashes = PlannedCrashes(server, [("fetch", CrashMoment.ANSWERED)], restarted=set_cap)
    work_to_end(model, crashes, monkeypatch)
    assert_nothing_is_missing(run)
    assert run.requests_reserved >= count_sent_requests(scripted, model)
