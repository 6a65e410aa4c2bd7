"""How quantiles of times are written on every page and in every report: `3.5 s [3.0 – open, n = 40]`."""

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.evals.statistics.rounding import written

OPEN_BOUND = "open"
UNKNOWN = "–"


def write_quantile(found: Quantile | None) -> str:
    """Return a quantile of milliseconds in seconds, with its bounds and the number of answers; a dash for None."""
    return f"{write_value(found)} {write_bounds(found)}" if found else UNKNOWN


def write_value(found: Quantile) -> str:
    """Return the value alone, as the first part of `write_quantile`."""
    return f"{_write_seconds(found.value, found)} s"


def write_bounds(found: Quantile) -> str:
    """Return the bounds and the number of answers, as the second part of `write_quantile`."""
    low, high = (OPEN_BOUND if end is None else _write_seconds(end, found) for end in (found.low, found.high))
    return f"[{low} – {high}, n = {found.n:,}]"


def _write_seconds(milliseconds: float, found: Quantile) -> str:
    """Write value and bounds of `found` with equally many places: one from 1 s on, two from 0.1 s on, else three."""
    places = 1 if found.value >= 1000 else 2 if found.value >= 100 else 3
    return written(milliseconds / 1000, places)
