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


def begin_transaction_with_lock() -> None:
    transaction.set_autocommit(False)
    take_lock()


def select_seven() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        return int(cursor.fetchone()[0])


def test_database_thread_idle_in_transaction_loses_its_locks(elsewhere: RunInThread) -> None:
    async def freeze() -> int:
        database = DatabaseThread()
        await database.run(begin_transaction_with_lock)
        await asyncio.wrap_future(elsewhere(take_lock))  # waits until the database has ended the idle session
        with pytest.raises(UNAVAILABLE_ERRORS):
            await database.run(select_seven)
        answer = await database.run(select_seven)
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
    ("statement", "error"),
    [(sleep_too_long, StatementRefusedError), (end_own_connection, OperationalError)],
    ids=["refused", "unavailable"],
)
def test_database_thread_run_distinguishes_refusal_from_outage(
    statement: Callable[[], None], error: type[Exception]
) -> None:
    async def answer() -> int:
        database = DatabaseThread()
        with pytest.raises(error):
            await database.run(statement)
        answer = await database.run(select_seven)
        await database.close()
        return answer

    assert not issubclass(StatementRefusedError, UNAVAILABLE_ERRORS)
    assert asyncio.run(answer()) == 7


def test_database_thread_close_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OperationalError("the database is away")

    async def close() -> None:
        monkeypatch.setattr(database_thread, "_connect", refuse)
        database = DatabaseThread()
        with pytest.raises(OperationalError):
            await database.run(select_seven)
        await database.close()

    asyncio.run(close())


def test_database_thread_runs_functions_in_call_order() -> None:
    async def order() -> list[int]:
        database = DatabaseThread()
        done: list[int] = []
        await asyncio.gather(*(database.run(done.append, number) for number in range(20)))
        await database.close()
        return done

    assert asyncio.run(order()) == list(range(20))


def test_open_pipeline_returns_rows_of_each_statement() -> None:
    with transaction.atomic(), open_pipeline():
        first = database_thread.open_cursor().execute("SELECT %s::text", ["a"])
        second = database_thread.open_cursor().execute("SELECT %s::bytea", [b"\x00"])
    assert (first.fetchall(), second.fetchall()) == ([("a",)], [(b"\x00",)])


def delete_then_fail() -> None:
    with transaction.atomic(), open_pipeline():
        database_thread.open_cursor().execute("DELETE FROM lab_samplingprofile")
        database_thread.open_cursor().execute("SELECT %s::int", ["no number"])


def test_open_pipeline_refused_statement_raises_and_rolls_back() -> None:
    SamplingProfile.objects.create(name="kept")
    with pytest.raises(DataError):
        delete_then_fail()
    assert SamplingProfile.objects.get().name == "kept"
