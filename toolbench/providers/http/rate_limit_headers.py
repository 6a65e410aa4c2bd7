"""Rate limits in the headers of a response, as OpenAI, Anthropic and the IETF draft spell them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from toolbench.engine.bounds import parse_count, parse_number
from toolbench.engine.types import JsonObject
from toolbench.providers.http.retry_delay import MAX_WAIT_SECONDS, read_response_time

# (header of the remaining count, header of the reset time, whether tokens are counted)
_LIMIT_HEADERS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", False),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", True),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset", False),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", True),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset", True),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset", True),
    ("x-ratelimit-remaining", "x-ratelimit-reset", False),
    ("ratelimit-remaining", "ratelimit-reset", False),
)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MIN_EPOCH_SECONDS, _MIN_EPOCH_MS = 10**9, 10**12  # from these on, numbers count from 1970; smaller ones from now


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """Remaining part of one limit, and the time of its reset.

    Attributes:
        remaining: requests or tokens that are left.
        counts_tokens: whether tokens are counted, not requests.
        reset_seconds: seconds from the response until the limit is reset, at most MAX_WAIT_SECONDS.
    """

    remaining: int
    counts_tokens: bool
    reset_seconds: float


def parse_rate_limits(headers: JsonObject) -> tuple[RateLimitState, ...]:
    """Return the limits whose remaining count and reset time can both be read.

    Args:
        headers: response headers with lower-case names.
    """
    states = []
    for remaining_name, reset_name, counts_tokens in _LIMIT_HEADERS:
        if remaining_name in headers and reset_name in headers:
            remaining = _parse_remaining(str(headers[remaining_name]))
            seconds = parse_reset(str(headers[reset_name]), read_response_time(headers))
            if remaining is not None and seconds is not None:
                states.append(RateLimitState(remaining, counts_tokens, min(seconds, MAX_WAIT_SECONDS)))
    return tuple(states)


def _parse_remaining(text: str) -> int | None:
    """Parse a count. The IETF draft allows parameters after a semicolon, as in `12;w=60`."""
    text = text.partition(";")[0].strip()
    return parse_count(float(text)) if _NUMBER.fullmatch(text) else None


def parse_reset(text: str, response_time: datetime) -> float | None:
    """Parse the time of a reset.

    The header holds seconds from now, a duration such as `6m0s`, seconds or milliseconds since 1970, or an ISO 8601
    date; a date without a time zone is read as UTC.

    Args:
        text: value of the header.
        response_time: time of the response.

    Returns:
        Seconds from `response_time`, at least 0; None if the text is unreadable.
    """
    text = text.partition(";")[0].strip().lower()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number >= _MIN_EPOCH_SECONDS:
            return _compute_seconds_until(number / 1000 if number >= _MIN_EPOCH_MS else number, response_time)
        return parse_number(number, _MIN_EPOCH_SECONDS)
    if text and not _DURATION.sub("", text):
        return sum(float(count) * _SECONDS_BY_UNIT[unit] for count, unit in _DURATION.findall(text))
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return _compute_seconds_until((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), response_time)


def _compute_seconds_until(epoch_seconds: float, response_time: datetime) -> float:
    return max(0.0, epoch_seconds - response_time.timestamp())
