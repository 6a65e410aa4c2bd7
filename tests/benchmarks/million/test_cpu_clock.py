"""CPU time that is measured for a page."""

import hashlib

import pytest
from django.db import connection

from benchmarks.million.cpu_clock import CpuClock


@pytest.mark.django_db
def test_cpu_clock_separates_python_and_database() -> None:
    with CpuClock() as idle:
        pass
    with CpuClock() as python:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)
    with connection.cursor() as cursor, CpuClock() as database:
        cursor.execute("SELECT sum(sqrt(number)) FROM generate_series(1, 500000) AS number")
    assert idle.cpu_ms < python.python_ms
    assert python.database_ms < python.python_ms
    assert database.python_ms < database.database_ms
