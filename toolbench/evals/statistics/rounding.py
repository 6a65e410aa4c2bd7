"""Rounding of the figures on pages and in reports: halves are rounded away from zero."""

from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT_CONTEXT = Context(prec=400)  # enough digits for any float


def round_half_up(number: float, places: int = 0) -> float:
    """Return `number` rounded to `places` decimal places; halves are rounded away from zero.

    92.5 becomes 93, whereas Python's `round` returns 92.
    """
    return float(Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT_CONTEXT))


def format_rounded(number: float, places: int = 0) -> str:
    """Return `number` as text with exactly `places` decimal places; halves are rounded away from zero."""
    return f"{round_half_up(number, places):.{places}f}"


def round_to_int(number: float) -> int:
    """Return the nearest integer; halves are rounded away from zero."""
    return int(round_half_up(number))
