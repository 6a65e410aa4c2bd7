"""Defects put into the worker on purpose: the player of crash schedules finds each."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment, replace_attribute
from benchmarks.crashes.player import Player
from toolbench.gateway import trace_writer
from toolbench.lab.metrics import cells
from toolbench.lab.models import Cell
from toolbench.lab.worker import batch_writer, request_gate, storage
from toolbench.lab.worker.request_budget import Reservation

LEASE_CONDITIONS = (  # of the rows that are read, and of the rows that are written
    " AND trial.lease = row.lease AND trial.state = 'running'",
    " AND trial.lease = row.lease AND (trial.state = 'running') IS TRUE",
)


def find_kinds(player: Player, kind: str, events: str, moment: Moment, fault: Fault) -> set[str]:
    """Crash at every event of the process whose description begins with `events`; return the kinds of violations."""
    numbers = [number for number, text in enumerate(player.play(kind).events, 1) if text.startswith(events)]
    assert numbers
    played = [player.play(kind, CrashPoint(number, moment, fault)) for number in numbers]
    return {violation.kind for result in played for violation in result.violations}


def test_player_finds_doubled_trial_without_lease_check(player: Player) -> None:
    statement_without_lease = storage._WRITE_OUTCOMES
    for condition in LEASE_CONDITIONS:
        assert condition in statement_without_lease
        statement_without_lease = statement_without_lease.replace(condition, "")
    outcome = "WITH held AS"
    assert find_kinds(player, "fixed", outcome, Moment.BEFORE, Fault.FREEZE) == set()
    with replace_attribute(storage, "_WRITE_OUTCOMES", statement_without_lease):
        assert "doubled" in find_kinds(player, "fixed", outcome, Moment.BEFORE, Fault.FREEZE)


@contextmanager
def increment_passed_counts() -> Iterator[None]:
    """Increment the passed trials of cells after the commit instead of recounting them."""
    write_batch, recompute = storage.write_batch, cells.recompute

    def write_and_increment(batch: storage.Batch) -> storage.WriteResult:
        result = write_batch(batch)
        for trial_id in result.ended_ids:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE lab_cell SET passed = passed + 1 WHERE id = (SELECT cell_id FROM lab_trial WHERE id = %s)",
                    [trial_id],
                )
        return result

    def recompute_others(cell_ids: Iterable[int], *args: Any, **named: Any) -> Any:
        passed = dict(Cell.objects.values_list("pk", "passed"))
        result = recompute(list(cell_ids), *args, **named)
        for pk, count in passed.items():
            Cell.objects.filter(pk=pk).update(passed=count)
        return result

    with (
        replace_attribute(batch_writer, "write_batch", write_and_increment),
        replace_attribute(cells, "recompute", recompute_others),
    ):
        yield


def test_player_finds_wrong_cell_with_increments_for_recounts(player: Player) -> None:
    with increment_passed_counts():
        assert player.play("fixed").violations == ()
        assert "cell" in find_kinds(player, "fixed", "UPDATE lab_cell SET passed", Moment.BEFORE, Fault.KILL)


def test_player_finds_broken_limit_with_early_acknowledgement(player: Player) -> None:
    reserve = request_gate.BudgetReserver._reserve

    async def acknowledge_early(self: request_gate.BudgetReserver, run_id: int, requests: int) -> Reservation:
        async def count_later() -> None:
            await asyncio.sleep(0.1)
            await reserve(self, run_id, requests)

        task = asyncio.ensure_future(count_later())
        pending.add(task)
        task.add_done_callback(pending.discard)
        return Reservation(requests)

    pending: set[asyncio.Task[None]] = set()
    count = "WITH before AS"
    assert find_kinds(player, "token-capped", count, Moment.BEFORE, Fault.KILL) == set()
    with replace_attribute(request_gate.BudgetReserver, "_reserve", acknowledge_early):
        assert "limit" in find_kinds(player, "token-capped", count, Moment.BEFORE, Fault.KILL)


def test_player_finds_lost_traces_without_write_retries(player: Player) -> None:
    insert = "INSERT INTO lab_gatewaytrace"
    assert find_kinds(player, "gateway traces", insert, Moment.AFTER, Fault.CUT) == set()
    assert find_kinds(player, "gateway traces", insert, Moment.BEFORE, Fault.CUT) == set()
    with replace_attribute(trace_writer, "MAX_ATTEMPTS", 1):
        assert "lost" in find_kinds(player, "gateway traces", insert, Moment.BEFORE, Fault.CUT)
