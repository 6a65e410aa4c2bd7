"""Checks of the numbers in a test case; `true` and `false` are no numbers."""

from typing import Any


def is_whole_number(value: Any, minimum: int, maximum: int | None = None) -> bool:
    """Return whether a value is a whole number within both limits.

    Args:
        value: Any JSON value.
        minimum: The smallest number.
        maximum: The largest number; None for no limit.
    """
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and minimum <= value and (maximum is None or value <= maximum)


def is_seconds(value: Any, maximum: int) -> bool:
    """Return whether a value is a number of seconds above 0, up to `maximum`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= maximum
