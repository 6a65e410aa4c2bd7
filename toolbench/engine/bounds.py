"""Bounds of reported figures: tokens, cost, durations and dates.

A figure outside its bounds counts as unknown (None), so that sums over trials stay finite and fit their columns.
"""

import math
from datetime import UTC, datetime

MAX_TOKENS = 10**9
MAX_COST_USD = 10**6  # US dollars
MAX_DURATION_MS = 7 * 24 * 3600 * 1000  # 7 days
VALID_YEARS = range(1970, 2201)


def parse_count(value: object, limit: int = MAX_TOKENS) -> int | None:
    """Return `value` as a whole number from 0 to `limit`, or None for anything else; 12.0 becomes 12."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limit:
        return None
    return int(value) if value == int(value) else None


def parse_number(value: object, limit: float) -> float | None:
    """Return `value` as a float from 0 to `limit`, or None for anything else, including NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limit:
        return None
    return math.fabs(value)  # -0.0 becomes 0.0


def parse_cost(value: object) -> float | None:
    """Return `value` as US dollars from 0 to MAX_COST_USD, or None for anything else."""
    return parse_number(value, MAX_COST_USD)


def parse_duration_ms(value: object, *, ms_per_unit: float = 1.0) -> float | None:
    """Return `value` in milliseconds, from 0 to MAX_DURATION_MS, or None for anything else.

    Args:
        value: a duration.
        ms_per_unit: milliseconds in the unit of `value`: 1000 for seconds.
    """
    number = parse_number(value, MAX_DURATION_MS / ms_per_unit)
    return None if number is None else number * ms_per_unit


def filter_valid_date(value: datetime) -> datetime | None:
    """Return `value` if it has a time zone and its year in UTC lies in VALID_YEARS, else None."""
    try:
        return value if value.tzinfo and value.astimezone(UTC).year in VALID_YEARS else None
    except OverflowError:
        return None
