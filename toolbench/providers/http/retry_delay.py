"""How long to wait before the same request is sent again."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import tenacity

from toolbench.engine.bounds import parse_duration_ms
from toolbench.engine.types import JsonObject

MAX_WAIT_SECONDS = 60.0  # seconds; a longer Retry-After is cut to this
_EXPONENTIAL_WAIT = tenacity.wait_exponential_jitter(multiplier=0.5, max=20.0, jitter=0.5)
_RETRYING = tenacity.AsyncRetrying(reraise=True)


def compute_wait_seconds(attempt: int, headers: JsonObject) -> float:
    """Seconds to wait after the `attempt`-th failure (from 1): what the answer asks for by Retry-After, else
    exponential with jitter. `headers` have lower-case names."""
    asked = parse_retry_after(headers)
    if asked is not None:
        return asked
    state = tenacity.RetryCallState(_RETRYING, None, (), {})
    state.attempt_number = attempt
    return _EXPONENTIAL_WAIT(state)


def parse_retry_after(headers: JsonObject) -> float | None:
    """The wait that an answer asks for, in seconds from 0 to MAX_WAIT_SECONDS; None when it asks for none that can be
    read, or for an implausible one. A date is taken against the answer's own Date, where it has one."""
    value = str(headers.get("retry-after", "")).strip()
    seconds = _parse_seconds(value)
    if seconds is None:
        moment = _parse_date(value)
        if moment is None:
            return None
        now = _parse_date(str(headers.get("date", ""))) or datetime.now(UTC)
        seconds = max((moment - now).total_seconds(), 0.0)
    asked = parse_duration_ms(seconds, per_unit=1000)
    return None if asked is None else min(asked / 1000, MAX_WAIT_SECONDS)


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
