"""Request gate: failed reservations, and leases that are not confirmed in time."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError

from tests.factories import make_run
from tests.lab.scripted_runs import delay_answers, launch_run, make_scripted_model
from toolbench.lab.maintenance import check_runs
from toolbench.lab.models import Run
from toolbench.lab.worker import request_gate, session
from toolbench.lab.worker.claims import ClaimedTrial, renew_leases
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.pacing.pacer import Pacer
from toolbench.lab.worker.request_budget import Reservation, reserve
from toolbench.lab.worker.request_gate import BudgetReserver, RequestGate
from toolbench.lab.worker.session import SessionOptions, run_session
from toolbench.lab.worker.slots import Slots
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def reserve_together(*run_ids: int) -> list[Any]:
    """Reserve one request for each of these runs in one round.

    Returns:
        For each run None or its exception, in the order of the runs; last the exception of the round itself.
    """

    async def reserve_all() -> list[Any]:
        database = DatabaseThread()
        reserver = BudgetReserver(database)
        reservations = [asyncio.create_task(reserver.reserve(run_id)) for run_id in run_ids]
        running = asyncio.create_task(reserver.run())
        answers = await asyncio.gather(*reservations, return_exceptions=True)
        running.cancel()
        ended = await asyncio.gather(running, return_exceptions=True)
        await database.close()
        return [*answers, *ended]

    return asyncio.run(reserve_all())


def test_budget_reserver_failing_run_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_run, working_run = make_run(state=Run.State.RUNNING), make_run(state=Run.State.RUNNING)

    def reserve_or_fail(run_id: int, wanted: int) -> Reservation:
        if run_id == failing_run.pk:
            raise ValueError("injected")
        return reserve(run_id, wanted)

    replacement: Callable[[int, int], Reservation] = reserve_or_fail
    monkeypatch.setattr(request_gate, "reserve", replacement)
    first, second, third, ended = reserve_together(failing_run.pk, working_run.pk, failing_run.pk)
    assert [str(first), second, str(third), str(ended)] == ["injected", None, "injected", "injected"]
    working_run.refresh_from_db()
    assert working_run.requests_reserved == 1


def test_request_gate_unconfirmed_lease_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests were reserved with the claim, so only the gate can stop them."""
    away_until, sent = time.monotonic() + 2.0, list[int]()

    def renew_later(leases: Any) -> Any:
        if time.monotonic() < away_until:
            raise OperationalError("the database is away")
        sent.append(len(scripted.seen))
        return renew_leases(leases)

    monkeypatch.setattr(settings, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(settings, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(session, "renew_leases", renew_later)
    with ScriptedServer(delay_answers(0.2)) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, trials=1)
        run_session(model.provider_id, SessionOptions(30.0, check_runs=check_runs, sweep=lambda *, with_counts: None))
    assert sent[0] < 3
    assert (run.trials.get().outcome, len(scripted.seen)) == ("pass", 3)


def test_request_gate_waits_if_lease_expires_during_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(state=Run.State.RUNNING)
    trial = ClaimedTrial(1, run.pk, 1, 1, 1, uuid4(), "happy_path", 1, "drawn", 1, 1)

    async def pass_gate() -> None:
        database = DatabaseThread()
        reserver = BudgetReserver(database)
        gate = RequestGate(trial, 1, reserver, database, Slots(), Pacer(1, database), reserved_requests=0)

        def reserve_late(run_id: int, wanted: int) -> Reservation:
            gate.lease_confirmed_at -= settings.LEASE_SECONDS + 1
            return reserve(run_id, wanted)

        monkeypatch.setattr(request_gate, "reserve", reserve_late)
        running, passing = asyncio.create_task(reserver.run()), asyncio.create_task(gate.reserve())
        while not passing.done() and not gate.reserved_requests:
            await asyncio.sleep(0.01)
        assert not passing.done()
        gate.lease_confirmed_at = time.monotonic()
        await passing
        assert gate.reserved_requests == 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await database.close()

    asyncio.run(pass_gate())
