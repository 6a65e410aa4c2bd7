"""Wait time before a retry."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import tenacity

from toolbench.engine.bounds import parse_duration_ms
from toolbench.engine.types import JsonObject

MAX_WAIT_SECONDS = 60.0  # longest wait before one retry; a longer Retry-After is reduced to it
_EXPONENTIAL_WAIT = tenacity.wait_exponential_jitter(multiplier=0.5, max=20.0, jitter=0.5)
_RETRYING = tenacity.AsyncRetrying()  # RetryCallState requires it; it retries nothing


def compute_wait_seconds(attempt: int, headers: JsonObject) -> float:
    """Return the seconds to wait after a failed attempt.

    The wait is that of `Retry-After`; without it, the wait grows exponentially, with jitter, up to 20 seconds.

    Args:
        attempt: number of the failed attempt, from 1.
        headers: response headers with lower-case names.
    """
    requested_seconds = parse_retry_after(headers)
    if requested_seconds is not None:
        return requested_seconds
    state = tenacity.RetryCallState(_RETRYING, None, (), {})
    state.attempt_number = attempt
    return _EXPONENTIAL_WAIT(state)


def parse_retry_after(headers: JsonObject, max_seconds: float = MAX_WAIT_SECONDS) -> float | None:
    """Parse the `Retry-After` header, which holds seconds or a date.

    A date is compared with the response's own `Date` header, else with the clock of this machine.

    Args:
        headers: response headers with lower-case names.
        max_seconds: longest wait; a longer one is reduced to it.

    Returns:
        Seconds from 0 to `max_seconds`; None if the header is absent or unreadable, negative, or above 7 days.
    """
    value = str(headers.get("retry-after", "")).strip()
    seconds = _parse_seconds(value)
    if seconds is None:
        moment = _parse_date(value)
        if moment is None:
            return None
        seconds = max((moment - read_response_time(headers)).total_seconds(), 0.0)
    wait_ms = parse_duration_ms(seconds, ms_per_unit=1000)
    return None if wait_ms is None else min(wait_ms / 1000, max_seconds)


def read_response_time(headers: JsonObject) -> datetime:
    """Return the time of a response by its `Date` header, else by the clock of this machine."""
    return _parse_date(str(headers.get("date", ""))) or datetime.now(UTC)


def _parse_seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
