"""Heartbeats as the supervisor reads them."""

import os
import socket

import pytest
from django.db import connection

from tests.worker_process import build_environment
from toolbench.running.heartbeats import read_silent_seconds

pytestmark = pytest.mark.django_db(transaction=True)


def test_read_silent_seconds_uses_the_newest_row_of_a_process() -> None:
    rows = [("worker", os.getpid(), 3600), ("scheduler", os.getpid(), 5), ("worker", os.getpid() + 1, 50)]
    with connection.cursor() as cursor:
        for kind, pid, age in rows:
            cursor.execute(
                "INSERT INTO lab_process (name, kind, host, pid, loop_lag_ms, clock_offset_ms, seen_at)"
                " VALUES (%s, %s, %s, %s, 0, 0, clock_timestamp() - make_interval(secs => %s))",
                [f"{kind}@{pid}", kind, socket.gethostname(), pid, age],
            )

    found = read_silent_seconds(build_environment()["DATABASE_URL"])

    assert found is not None
    assert {pid: seconds // 10 for pid, seconds in found.items()} == {os.getpid(): 0, os.getpid() + 1: 5}


def test_read_silent_seconds_keeps_the_options_of_the_address() -> None:
    url = build_environment()["DATABASE_URL"]
    separator = "&" if "?" in url else "?"

    assert read_silent_seconds(url) is not None
    assert read_silent_seconds(f"{url}{separator}options=-csearch_path%3Dnowhere") is None


def test_read_silent_seconds_without_a_database_is_none() -> None:
    assert read_silent_seconds("postgresql://nobody@127.0.0.1:1/none") is None
