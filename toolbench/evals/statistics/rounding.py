"""Rounding of every figure that is shown: half away from zero, as people do it."""

from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT_CONTEXT = Context(prec=400)  # enough digits for any float


def round_half_up(number: float, places: int = 0) -> float:
    """Return `number` with so many decimal places; 92.5 becomes 93, whereas Python's `round` returns 92."""
    return float(Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT_CONTEXT))


def format_rounded(number: float, places: int = 0) -> str:
    """Return `number` rounded half away from zero, as text with exactly so many decimal places."""
    return f"{round_half_up(number, places):.{places}f}"


def round_to_int(number: float) -> int:
    """Return the nearest integer; halves are rounded up."""
    return int(round_half_up(number))
