import asyncio
from collections.abc import Callable

import pytest
from django.db import DataError, OperationalError, connection, transaction

from tests.lab.conftest import RunInThread
from toolbench.lab.models import SamplingProfile
from toolbench.lab.worker import database_thread
from toolbench.lab.worker.database_thread import (
    UNAVAILABLE_ERRORS,
    DatabaseThread,
    StatementRefusedError,
    open_pipeline,
)

pytestmark = pytest.mark.django_db(transaction=True)


def take_lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(4711)")


def begin_and_leave_it_lying() -> None:
    transaction.set_autocommit(False)
    take_lock()


def ask() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        return int(cursor.fetchone()[0])


def test_locks_of_worker_frozen_in_transaction_end_after_lease(elsewhere: RunInThread) -> None:
    async def freeze() -> int:
        database = DatabaseThread()
        await database.run(begin_and_leave_it_lying)
        await asyncio.wrap_future(elsewhere(take_lock))  # waits until the database has ended the other
        with pytest.raises(UNAVAILABLE_ERRORS):
            await database.run(ask)
        answer = await database.run(ask)
        await database.close()
        return answer

    assert asyncio.run(freeze()) == 7


def sleep_too_long() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 10")
        cursor.execute("SELECT pg_sleep(600)")


def end_own_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    ("verb", "error"),
    [(sleep_too_long, StatementRefusedError), (end_own_connection, OperationalError)],
    ids=["refused", "away"],
)
def test_run_tells_refusals_from_absence(verb: Callable[[], None], error: type[Exception]) -> None:
    async def answer() -> int:
        database = DatabaseThread()
        with pytest.raises(error):
            await database.run(verb)
        answer = await database.run(ask)
        await database.close()
        return answer

    assert not issubclass(StatementRefusedError, UNAVAILABLE_ERRORS)
    assert asyncio.run(answer()) == 7


def test_close_without_a_connection_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OperationalError("the database is away")

    async def close() -> None:
        monkeypatch.setattr(database_thread, "_connect", refuse)
        database = DatabaseThread()
        with pytest.raises(OperationalError):
            await database.run(ask)
        await database.close()

    asyncio.run(close())


def test_verbs_run_in_the_order_they_were_asked_for() -> None:
    async def order() -> list[int]:
        database = DatabaseThread()
        done: list[int] = []
        await asyncio.gather(*(database.run(done.append, number) for number in range(20)))
        await database.close()
        return done

    assert asyncio.run(order()) == list(range(20))


pytestmark = pytest.mark.django_db(transaction=True)


def test_each_of_the_statements_sent_together_has_its_own_answer() -> None:
    with transaction.atomic(), open_pipeline():
        first = database_thread.open_cursor().execute("SELECT %s::text", ["a"])
        second = database_thread.open_cursor().execute("SELECT %s::bytea", [b"\x00"])
    assert (first.fetchall(), second.fetchall()) == ([("a",)], [(b"\x00",)])


def delete_and_stumble() -> None:
    with transaction.atomic(), open_pipeline():
        database_thread.open_cursor().execute("DELETE FROM lab_samplingprofile")
        database_thread.open_cursor().execute("SELECT %s::int", ["no number"])


def test_what_one_of_them_is_refused_for_is_djangos_error_and_undoes_all() -> None:
    SamplingProfile.objects.create(name="kept")
    with pytest.raises(DataError):
        delete_and_stumble()
    assert SamplingProfile.objects.get().name == "kept"
