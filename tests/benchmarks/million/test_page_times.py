"""Limits of a page's cost, and the CPU that is measured for it."""

import hashlib
from dataclasses import replace

import pytest
from django.db import connection

from benchmarks.million.cpu_clock import CpuClock
from benchmarks.million.page_times import CPU_LIMITS, LIMITS, PageCost

CHEAP = PageCost("/", 200, first_ms=300, first_cpu_ms=200, p95_ms=90, cpu_ms=50, queries=12, kilobytes=60)


@pytest.mark.parametrize(
    "cost",
    [
        replace(CHEAP, first_ms=401.0),
        replace(CHEAP, p95_ms=101.0),
        replace(CHEAP, queries=13),
        replace(CHEAP, kilobytes=60.1),
        replace(CHEAP, status=500),
    ],
)
def test_cost_over_any_limit_exceeds_them(cost: PageCost) -> None:
    assert not CHEAP.exceeds(LIMITS)
    assert cost.exceeds(LIMITS)


def test_slow_machine_exceeds_no_limit_of_cpu() -> None:
    slow = replace(CHEAP, first_ms=4_000.0, p95_ms=900.0)
    assert slow.exceeds(LIMITS)
    assert not slow.exceeds(CPU_LIMITS)


@pytest.mark.django_db
def test_cpu_of_the_process_and_of_the_database_are_told_apart() -> None:
    with CpuClock() as idle:
        pass
    with CpuClock() as python:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)
    with connection.cursor() as cursor, CpuClock() as database:
        cursor.execute("SELECT sum(sqrt(number)) FROM generate_series(1, 500000) AS number")
    assert idle.cpu_ms < python.python_ms
    assert python.database_ms < python.python_ms
    assert database.python_ms < database.database_ms
