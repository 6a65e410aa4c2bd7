"""Batches of the writer: their size, and a row that the database refuses."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.lab.worker.test_storage import build_outcome_write, build_step_write, make_exchange_step, make_running_trial
from toolbench.lab.models import Trial
from toolbench.lab.worker import batch_writer
from toolbench.lab.worker.batch_writer import BatchWriter
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.slots import TrialLease
from toolbench.lab.worker.storage import Batch, OutcomeWrite, RequeueWrite, WriteResult, write_batch

LARGE_TEXT_DIGITS = 2_000_000  # hexadecimal digits


@pytest.mark.django_db(transaction=True)
def test_batch_writer_spreads_large_outcomes_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[Batch] = []

    def record_batch(batch: Batch) -> WriteResult:
        batches.append(batch)
        return write_batch(batch)

    monkeypatch.setattr(batch_writer, "write_batch", record_batch)
    monkeypatch.setattr(batch_writer, "MAX_BATCH_BYTES", 3 * LARGE_TEXT_DIGITS)
    outcomes = [build_outcome_write(make_running_trial(), final_text="61" * (LARGE_TEXT_DIGITS // 2)) for _ in range(8)]
    asyncio.run(_write_all(outcomes))

    assert [len(batch.outcomes) for batch in batches] == [2, 2, 2, 2]
    assert Trial.objects.filter(state="done").count() == 8


@pytest.mark.django_db(transaction=True)
def test_batch_writer_continues_after_permanent_refusal(refuse: Callable[[str], None]) -> None:
    refuse("54000")
    refused, *others = [make_running_trial() for _ in range(3)]

    asyncio.run(_write_all([build_outcome_write(refused, sentence="refused"), *map(build_outcome_write, others)]))

    assert Trial.objects.filter(state="done").count() == 3


@pytest.mark.django_db(transaction=True)
def test_batch_writer_keeps_writes_during_a_batch_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = [RequeueWrite(number, uuid4()) for number in range(3)]
    successor = TrialLease(9, uuid4())
    batches, taken = asyncio.run(_queue_while_writing(monkeypatch, first, [second, third], successor))
    assert [batch.requeues for batch in batches] == [[first], [second, third]]
    assert [batch.successors for batch in batches] == [[successor], [successor]]
    assert taken == [{first.lease}, {second.lease, third.lease}]


@pytest.mark.django_db(transaction=True)
def test_batch_writer_stores_outcome_before_later_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[Batch] = []

    def record_batch(batch: Batch) -> WriteResult:
        batches.append(batch)
        return write_batch(batch)

    monkeypatch.setattr(batch_writer, "write_batch", record_batch)
    monkeypatch.setattr(batch_writer, "MAX_BATCH_ROWS", 2)
    trials = [make_running_trial() for _ in range(2)]
    steps = [
        [build_step_write(trial, make_exchange_step(1)), build_step_write(trial, make_exchange_step(2))]
        for trial in trials
    ]
    outcomes = [
        replace(build_outcome_write(trial), steps=trial_steps) for trial, trial_steps in zip(trials, steps, strict=True)
    ]
    asyncio.run(_write_all(outcomes))

    assert [(len(batch.steps), len(batch.outcomes)) for batch in batches] == [(2, 1), (2, 1)]
    assert Trial.objects.filter(state="done").count() == 2


async def _queue_while_writing(
    monkeypatch: pytest.MonkeyPatch, first: RequeueWrite, later: list[RequeueWrite], successor: TrialLease
) -> tuple[list[Batch], list[Collection[UUID]]]:
    loop, database, is_done = asyncio.get_running_loop(), DatabaseThread(), asyncio.Event()
    batches: list[Batch] = []
    taken: list[Collection[UUID]] = []

    def queue_more(batch: Batch) -> WriteResult:
        for requeue in [] if batches else later:
            loop.call_soon_threadsafe(writer.put_requeue, requeue)
        if batches:
            loop.call_soon_threadsafe(is_done.set)
        batches.append(batch)
        return WriteResult()

    def take_successors(leases: Collection[UUID]) -> list[TrialLease]:
        taken.append(leases)
        return [successor]

    monkeypatch.setattr(batch_writer, "write_batch", queue_more)
    writer = BatchWriter(database, take_successors, lambda leases, done: None)
    writer.put_requeue(first)
    task = asyncio.create_task(writer.run())
    await is_done.wait()
    task.cancel()
    await database.close()
    return batches, taken


async def _write_all(outcomes: list[OutcomeWrite]) -> None:
    unstored = {outcome.lease for outcome in outcomes}
    database = DatabaseThread()

    def remove_stored(leases: Iterable[UUID], done: int) -> None:
        unstored.difference_update(leases)
        if not unstored:
            task.cancel()

    writer = BatchWriter(database, lambda _: [], remove_stored)
    for outcome in outcomes:
        for step in outcome.steps:
            writer.put_step(step)
        writer.put_outcome(outcome)
    task = asyncio.create_task(writer.run())
    with suppress(asyncio.CancelledError):
        await task
    await database.close()
