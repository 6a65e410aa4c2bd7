"""Functions that validate the numbers of a test case; `true` and `false` are not numbers."""

from typing import Any


def is_whole_number(value: Any, minimum: int, maximum: int | None = None) -> bool:
    """Return whether a value is an int, but no bool, within the limits.

    Args:
        value: Any JSON value.
        minimum: The smallest valid number.
        maximum: The largest valid number; None for no limit.
    """
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and minimum <= value and (maximum is None or value <= maximum)


def is_seconds(value: Any, maximum: int) -> bool:
    """Return whether a value is a number of seconds above 0, up to `maximum`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= maximum
