"""Reservations that fail answer those that wait for them, and no others."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.factories import make_run
from toolbench.lab.models import Run
from toolbench.lab.worker import request_gate
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.request_budget import Reservation, reserve
from toolbench.lab.worker.request_gate import BudgetReserver

pytestmark = pytest.mark.django_db(transaction=True)


def asked_together(*run_ids: int) -> list[Any]:
    """What each of these runs is answered by one round of reservations, and last what the round itself raised."""

    async def ask() -> list[Any]:
        database = DatabaseThread()
        reserving = BudgetReserver(database)
        asking = [asyncio.create_task(reserving.reserve(run_id)) for run_id in run_ids]
        running = asyncio.create_task(reserving.run())
        answers = await asyncio.gather(*asking, return_exceptions=True)
        running.cancel()
        ended = await asyncio.gather(running, return_exceptions=True)
        await database.close()
        return [*answers, *ended]

    return asyncio.run(ask())


def test_run_whose_requests_cannot_be_counted_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = make_run(state=Run.State.RUNNING), make_run(state=Run.State.RUNNING)

    def failing(run_id: int, wanted: int) -> Reservation:
        if run_id == bad.pk:
            raise ValueError("injected")
        return reserve(run_id, wanted)

    verb: Callable[[int, int], Reservation] = failing
    monkeypatch.setattr(request_gate, "reserve", verb)
    first, second, third, ended = asked_together(bad.pk, good.pk, bad.pk)
    assert [str(first), second, str(third), str(ended)] == ["injected", None, "injected", "injected"]
    good.refresh_from_db()
    assert good.requests_reserved == 1
