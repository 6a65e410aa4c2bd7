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


def test_process_connections_pass_closed_connection_to_next_process(idle: IdleConnections) -> None:
    first, second = ProcessConnections(idle), ProcessConnections(idle)
    session = open_connection(first)
    backend = session.info.backend_pid
    session.close()
    assert open_connection(second).info.backend_pid == backend
    assert first.backends == second.backends == {backend}
    first.cut_all()
    assert session.execute("SELECT 1").fetchone() == (1,)
    second.close()


def test_process_connections_close_connection_in_transaction(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    session = open_connection(process)
    session.execute("BEGIN")
    session.close()
    assert session.closed
    assert idle.take() is None


def test_process_connections_never_reuse_cut_connection(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    session = open_connection(process)
    process.cut(session)
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")
    unused = open_connection(process)
    process.cut(unused)
    unused.close()
    assert idle.take() is None


def test_process_connections_cut_all_in_transaction_keeps_others(idle: IdleConnections) -> None:
    process = ProcessConnections(idle)
    idle_session, busy = open_connection(process), open_connection(process)
    busy.execute("BEGIN")
    process.cut_all(in_transaction=True)
    with pytest.raises(psycopg.OperationalError):
        busy.execute("SELECT 1")
    assert idle_session.execute("SELECT 1").fetchone() == (1,)
    process.close()
    assert idle_session.closed
