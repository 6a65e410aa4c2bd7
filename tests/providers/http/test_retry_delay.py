from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from toolbench.providers.http.retry_delay import MAX_WAIT_SECONDS, compute_wait_seconds, parse_retry_after

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.25", 0.25),
        ("0", 0.0),
        ("-5", None),
        ("86400", MAX_WAIT_SECONDS),
        ("604800", MAX_WAIT_SECONDS),
        ("604801", None),
        ("1e308", None),
        ("inf", None),
        ("9" * 400, None),
        (format_datetime(NOON + timedelta(seconds=9), usegmt=True), 9.0),
        (format_datetime(NOON - timedelta(hours=1), usegmt=True), 0.0),
        (format_datetime(NOON + timedelta(days=1), usegmt=True), MAX_WAIT_SECONDS),
        ("Sat, 21 Nov 2026 12:00:09", 9.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("Sat, 99 Nov 2026 12:00:09 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        (f"Sat, 21 Nov {'9' * 20} 12:00:09 GMT", None),
        (f"Sat, 21 Nov 2026 12:00:09 +{'9' * 20}", None),
    ],
)
def test_parse_retry_after_reads_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert parse_retry_after({"retry-after": value, "date": format_datetime(NOON, usegmt=True)}) == seconds


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("600", 600.0), ("86400", 3600.0), ("604801", None)])
def test_parse_retry_after_reduces_a_wait_to_the_given_maximum(value: str, seconds: float | None) -> None:
    assert parse_retry_after({"retry-after": value}, 3600.0) == seconds


def test_parse_retry_after_without_date_header_uses_the_local_clock() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    seconds = parse_retry_after({"retry-after": soon})
    assert seconds is not None
    assert 0 < seconds <= 30


def test_compute_wait_seconds_prefers_retry_after() -> None:
    assert compute_wait_seconds(5, {"retry-after": "1"}) == 1.0


def test_compute_wait_seconds_grows_with_jitter_up_to_the_limit() -> None:
    bounds = [(0.5, 1.0), (1.0, 1.5), (2.0, 2.5), (4.0, 4.5)]
    for attempt, (minimum, maximum) in enumerate(bounds, start=1):
        assert minimum <= compute_wait_seconds(attempt, {}) <= maximum
    assert compute_wait_seconds(50, {}) == 20.0
