from datetime import UTC, datetime, timedelta

import pytest

from toolbench.providers.http.rate_limit_headers import RateLimitState, parse_rate_limits, parse_reset
from toolbench.providers.http.retry_delay import MAX_WAIT_SECONDS

NOW = datetime(2026, 11, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("100ms", 0.1),
        ("6m0s", 360.0),
        ("2m59.5s", 179.5),
        ("1h", 3600.0),
        ("20", 20.0),
        ("0.5", 0.5),
        ("5;w=60", 5.0),
        ("1000000000000", 0.0),
        ("2001-01-01T00:00:00Z", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("1e9", None),
        ("9" * 400, None),
        ("2026-99-01T00:00:00Z", None),
    ],
)
def test_parse_reset_reads_durations_dates_and_epochs(text: str, seconds: float | None) -> None:
    assert parse_reset(text, NOW) == seconds


def test_parse_reset_of_a_later_date_is_the_time_until_then() -> None:
    assert parse_reset((NOW + timedelta(hours=1)).isoformat(), NOW) == 3600


def test_parse_rate_limits_compares_dates_with_the_response() -> None:
    """By the clock of this machine the reset is long past."""
    headers = {
        "date": "Thu, 01 Jan 2026 12:00:00 GMT",
        "ratelimit-remaining": "0",
        "ratelimit-reset": "2026-01-01T12:00:20Z",
    }
    assert parse_rate_limits(headers) == (RateLimitState(0, False, 20.0),)


def test_parse_rate_limits_reads_requests_and_tokens() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "12s",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert parse_rate_limits(headers) == (
        RateLimitState(0, False, 12.0),
        RateLimitState(149_984, True, MAX_WAIT_SECONDS),
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ratelimit-remaining": "5"},
        {"ratelimit-remaining": "many", "ratelimit-reset": "5"},
        {"ratelimit-remaining": "5", "ratelimit-reset": "soon"},
        {"ratelimit-remaining": "9" * 400, "ratelimit-reset": "5"},
    ],
)
def test_parse_rate_limits_ignores_what_it_cannot_read(headers: dict[str, str]) -> None:
    assert parse_rate_limits(headers) == ()
