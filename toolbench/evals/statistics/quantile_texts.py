"""Texts of quantiles of times for every page and report: `3.5 s [3.0 – open, n = 40]`."""

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.evals.statistics.rounding import format_rounded

OPEN_BOUND = "open"
UNKNOWN_VALUE = "–"


def render_quantile(found: Quantile | None) -> str:
    """Return a quantile of milliseconds in seconds, with its bounds and the number of answers; a dash for None."""
    return f"{render_quantile_value(found)} {render_quantile_bounds(found)}" if found else UNKNOWN_VALUE


def render_quantile_value(found: Quantile) -> str:
    """Return the value alone, as the first part of `render_quantile`."""
    return f"{_render_seconds(found.value, found)} s"


def render_quantile_bounds(found: Quantile) -> str:
    """Return the bounds and the number of answers, as the second part of `render_quantile`."""
    low, high = (OPEN_BOUND if end is None else _render_seconds(end, found) for end in (found.low, found.high))
    return f"[{low} – {high}, n = {found.n:,}]"


def _render_seconds(milliseconds: float, found: Quantile) -> str:
    """Return seconds with as many places as the value of `found` has: one from 1 s, two from 0.1 s, else three."""
    places = 1 if found.value >= 1000 else 2 if found.value >= 100 else 3
    return format_rounded(milliseconds / 1000, places)
