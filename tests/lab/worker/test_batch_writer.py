"""Batches of the writer: their size, and a row that the database refuses."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.lab.worker.test_storage import exchange, outcome_of, running_trial, step_of
from toolbench.lab.models import Trial
from toolbench.lab.worker import batch_writer
from toolbench.lab.worker.batch_writer import BatchWriter
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.slots import TrialLease
from toolbench.lab.worker.storage import Batch, OutcomeWrite, RequeueWrite, WriteResult, write_batch

LARGE = 2_000_000  # hexadecimal digits of a final text


@pytest.mark.django_db(transaction=True)
def test_writer_spreads_large_outcomes_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[Batch] = []

    def record_batch(batch: Batch) -> WriteResult:
        batches.append(batch)
        return write_batch(batch)

    monkeypatch.setattr(batch_writer, "write_batch", record_batch)
    monkeypatch.setattr(batch_writer, "MAX_BATCH_BYTES", 3 * LARGE)
    outcomes = [outcome_of(running_trial(), final_text="61" * (LARGE // 2)) for _ in range(8)]
    asyncio.run(_write_all(outcomes))

    assert [len(batch.outcomes) for batch in batches] == [2, 2, 2, 2]
    assert Trial.objects.filter(state="done").count() == 8


@pytest.mark.django_db(transaction=True)
def test_writer_goes_on_after_a_refusal_for_good(refuse: Callable[[str], None]) -> None:
    refuse("54000")
    refused, *others = [running_trial() for _ in range(3)]

    asyncio.run(_write_all([outcome_of(refused, sentence="refused"), *map(outcome_of, others)]))

    assert Trial.objects.filter(state="done").count() == 3


@pytest.mark.django_db(transaction=True)
def test_what_is_queued_while_a_batch_is_written_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = [RequeueWrite(number, uuid4()) for number in range(3)]
    successor = TrialLease(9, uuid4())
    batches, taken = asyncio.run(_queue_while_writing(monkeypatch, first, [second, third], successor))
    assert [batch.requeues for batch in batches] == [[first], [second, third]]
    assert [batch.successors for batch in batches] == [[successor], [successor]]
    assert taken == [{first.lease}, {second.lease, third.lease}]


@pytest.mark.django_db(transaction=True)
def test_outcome_does_not_wait_for_steps_that_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[Batch] = []

    def record_batch(batch: Batch) -> WriteResult:
        batches.append(batch)
        return write_batch(batch)

    monkeypatch.setattr(batch_writer, "write_batch", record_batch)
    monkeypatch.setattr(batch_writer, "MAX_BATCH_ROWS", 2)
    trials = [running_trial() for _ in range(2)]
    steps = [[step_of(trial, exchange(1)), step_of(trial, exchange(2))] for trial in trials]
    outcomes = [replace(outcome_of(trial), steps=own) for trial, own in zip(trials, steps, strict=True)]
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
