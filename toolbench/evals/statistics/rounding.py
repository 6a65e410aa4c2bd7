"""How every shown figure is rounded: half away from zero, as people do it."""

from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT_CONTEXT = Context(prec=400)  # of any float and its places


def round_half_up(number: float, places: int = 0) -> float:
    """`number` to so many decimal places; 92.5 becomes 93, where Python's own round gives 92."""
    return float(Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT_CONTEXT))


def format_rounded(number: float, places: int = 0) -> str:
    return f"{round_half_up(number, places):.{places}f}"
