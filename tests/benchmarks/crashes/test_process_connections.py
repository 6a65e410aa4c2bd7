from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from benchmarks.crashes.process_connections import AnyConnection, IdleConnections, ProcessConnections

pytestmark = pytest.mark.django_db


@pytest.fixture
def idle() -> Iterator[IdleConnections]:
    idle = IdleConnections()
    yield idle
    idle.close()


def connect() -> AnyConnection:
    return psycopg.connect(**connection.get_connection_params(), autocommit=True)


def open_connection(process: ProcessConnections) -> AnyConnection:
    return process.connect(connect, None)


def test_closed_connection_goes_to_the_next_process(idle: IdleConnections) -> None:
    first, second = ProcessConnections(idle), ProcessConnections(idle)
    session = open_connection(first)
    backend = session.info.backend_pid
    session.close()
    assert open_connection(second).info.backend_pid == backend
    assert first.backends == second.backends == {backend}
    first.cut_all()
    assert session.execute("SELECT 1").fetchone() == (1,)
    second.close()


def test_connection_in_a_transaction_is_closed(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    session = open_connection(process)
    session.execute("BEGIN")
    session.close()
    assert session.closed
    assert idle.take() is None


def test_cut_connection_fails_and_is_not_used_again(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    session = open_connection(process)
    process.cut(session)
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")
    unused = open_connection(process)
    process.cut(unused)
    unused.close()
    assert idle.take() is None


def test_freeze_cuts_only_connections_in_a_transaction(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    resting, busy = open_connection(process), open_connection(process)
    busy.execute("BEGIN")
    process.cut_all(in_transaction=True)
    with pytest.raises(psycopg.OperationalError):
        busy.execute("SELECT 1")
    assert resting.execute("SELECT 1").fetchone() == (1,)
    process.close()
    assert resting.closed
