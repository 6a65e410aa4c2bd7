"""Texts of quantiles of times, for pages and reports: `3.5 s [3.0 – open, n = 40]`."""

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.evals.statistics.rounding import format_rounded

OPEN_BOUND = "open"
UNKNOWN_VALUE = "–"


def render_quantile(quantile: Quantile | None) -> str:
    """Return a quantile of milliseconds in seconds, with bounds and number of answers; a dash for None."""
    return f"{render_quantile_value(quantile)} {render_quantile_bounds(quantile)}" if quantile else UNKNOWN_VALUE


def render_quantile_value(quantile: Quantile) -> str:
    """Return only the value of a quantile of milliseconds, in seconds."""
    return f"{_render_seconds(quantile.value, quantile)} s"


def render_quantile_bounds(quantile: Quantile) -> str:
    """Return only the bounds of a quantile of milliseconds, in seconds, and the number of answers.

    If both bounds are open, the text says so once: `[open, n = 5]`.
    """
    bounds = (quantile.low, quantile.high)
    if bounds == (None, None):
        return f"[{OPEN_BOUND}, n = {quantile.n:,}]"
    low, high = (OPEN_BOUND if bound is None else _render_seconds(bound, quantile) for bound in bounds)
    return f"[{low} – {high}, n = {quantile.n:,}]"


def _render_seconds(milliseconds: float, quantile: Quantile) -> str:
    """Return seconds, rounded to as many decimal places as the quantile's value needs.

    The number of places is 1 if that value is at least 1 s, 2 if it is at least 0.1 s, and else 3.
    """
    places = 1 if quantile.value >= 1000 else 2 if quantile.value >= 100 else 3
    return format_rounded(milliseconds / 1000, places)
